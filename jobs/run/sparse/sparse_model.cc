#include "jobs/run/sparse/sparse_model.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "dataflow/input/formats/libsvm.h"
#include "engine/error.h"
#include "jobs/run/weights/saved_model.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

constexpr const char* kWeight = "weight";
constexpr const char* kBias = "bias";

}  // namespace

dataflow::SparseRows load_sparse_rows(const SparseOptions& options, const std::string& data_root, SparseSplit split) {
  const std::filesystem::path path = std::filesystem::path(data_root) / options.directory /
                                     (split == SparseSplit::kTrain ? options.train : options.test);
  dataflow::SparseRows rows = dataflow::load_libsvm(path, options.features);
  const bool has_one_class = std::ranges::adjacent_find(rows.labels, std::ranges::not_equal_to()) == rows.labels.end();
  if (split == SparseSplit::kTrain && has_one_class) {
    engine::fail(ErrorKind::kData, "{}: all rows have the label {}; a training set needs rows of both classes",
                 path.string(), rows.labels.front());
  }
  return rows;
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
  const std::vector<dataflow::NamedTensor> expected =
      to_tensors({std::vector<float>(static_cast<std::size_t>(job.sparse->features)), 0.0F}, job.sparse->bias);
  const auto is_same = [](const dataflow::NamedTensor& a, const dataflow::NamedTensor& b) {
    return a.name == b.name && a.shape == b.shape;
  };
  if (!std::ranges::equal(tensors, expected, is_same)) {
    engine::fail(ErrorKind::kCheckpoint, "'{}' does not hold the model of its job.txtpb: {} features{}", path,
                 job.sparse->features, job.sparse->bias ? " and a bias" : "");
  }
  return {std::move(tensors.front().values), job.sparse->bias ? tensors.back().values.front() : 0.0F};
}

}  // namespace arbalest::jobs
