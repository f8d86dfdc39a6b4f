#include "train/sparse/sparse_model.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "checkpoint/xxh3.h"
#include "dataflow/expected_tensors.h"
#include "dataflow/input/formats/libsvm.h"
#include "engine/base/error.h"
#include "train/data/data_folder.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

constexpr const char* kWeight = "weight";
constexpr const char* kBias = "bias";

}  // namespace

dataflow::SparseRows load_sparse_rows(const SparseOptions& options, const std::string& data_root, SparseSplit split) {
  const std::filesystem::path folder = (std::filesystem::path(data_root) / options.directory).lexically_normal();
  require_data_folder(folder, options.directory);
  const std::filesystem::path path = folder / (split == SparseSplit::kTrain ? options.train : options.test);
  dataflow::SparseRows rows = dataflow::load_libsvm(path, options.features);
  const bool has_one_class = std::ranges::adjacent_find(rows.labels, std::ranges::not_equal_to()) == rows.labels.end();
  if (split == SparseSplit::kTrain && has_one_class) {
    engine::fail(ErrorKind::kData, "{}: all rows have the label {}; a training set needs rows of both classes",
                 path.string(), rows.labels.front());
  }
  return rows;
}

std::string digest_of(const dataflow::SparseRows& rows) {
  Xxh3 checksum;
  checksum.update(std::as_bytes(std::span(rows.starts)));
  checksum.update(std::as_bytes(std::span(rows.indices)));
  checksum.update(std::as_bytes(std::span(rows.values)));
  checksum.update(std::as_bytes(std::span(rows.labels)));
  return checksum.finish();
}

std::vector<dataflow::NamedTensor> to_tensors(const scheduler::LinearModel& model, bool bias) {
  std::vector<dataflow::NamedTensor> tensors;
  tensors.push_back({kWeight, {1, static_cast<std::int64_t>(model.weights.size())}, model.weights});
  if (bias) tensors.push_back({kBias, {1}, {model.bias}});
  return tensors;
}

Metadata describe_sparse_model(const JobOptions& job) {
  return {{"format", "arbalest"},
          {"job", job.name},
          {"model", "sparse_logistic"},
          {"features", std::to_string(job.sparse->features)}};
}

scheduler::LinearModel read_sparse_model(const JobOptions& job, const std::string& path, const std::string& sha256) {
  std::vector<dataflow::NamedTensor> tensors = read_finite_model(path, sha256);
  std::vector<dataflow::ExpectedTensor> expected = {{kWeight, {1, job.sparse->features}}};
  if (job.sparse->bias) expected.push_back({kBias, {1}});
  try {
    dataflow::check_tensors(tensors, expected);
  } catch (const engine::Error& error) {
    engine::fail(error.kind(), "'{}' does not hold the model of its job.txtpb: {}", path, error.what());
  }
  const auto values = [&](const char* name) -> std::vector<float>& {
    return std::ranges::find(tensors, name, &dataflow::NamedTensor::name)->values;
  };
  return {std::move(values(kWeight)), job.sparse->bias ? values(kBias).front() : 0.0F};
}

}  // namespace arbalest::jobs
