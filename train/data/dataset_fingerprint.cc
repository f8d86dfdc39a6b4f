#include "train/data/dataset_fingerprint.h"

#include <algorithm>
#include <span>

#include "checkpoint/xxh3.h"
#include "dataflow/input/example.h"
#include "engine/base/error.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

namespace {

template <typename T>
void add(Sha256& hash, const T& value) {
  hash.update(std::as_bytes(std::span(&value, 1)));
}

// An example that cannot be read counts as zeros: the run leaves it out, or ends.
void add_example(Sha256& hash, const dataflow::Dataset& data, std::int64_t number, const dataflow::Example& example) {
  try {
    data.read(number, {}, example.features());
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kData) throw;
    for (const dataflow::InputTensor& feature : example.features()) std::ranges::fill(feature.bytes(), std::byte{0});
  }
  for (const dataflow::InputTensor& feature : example.features()) hash.update(feature.bytes());
}

}  // namespace

std::string dataset_fingerprint(const dataflow::Dataset& data) { return dataset_fingerprint(data, 0, data.size()); }

std::string dataset_fingerprint(const dataflow::Dataset& data, std::int64_t first, std::int64_t examples) {
  constexpr std::int64_t kMostRead = 64;
  Sha256 hash;
  add(hash, examples);
  add(hash, data.description().classes());
  for (const dataflow::TensorDescription& feature : data.description().features()) {
    for (const std::int64_t extent : feature.shape) add(hash, extent);
  }
  const dataflow::Example example(data.description());
  for (std::int64_t i = 0; i < examples; ++i) {
    data.read_label(first + i, example.label());
    hash.update(example.label().bytes());
  }
  const std::int64_t read = std::min(kMostRead, examples);
  for (std::int64_t i = 0; i < read; ++i) add_example(hash, data, first + i * examples / read, example);
  return hash.finish();
}

std::string memory_digest(const dataflow::Dataset& data) {
  if (data.reads_files()) return "";
  Xxh3 hash;
  if (const auto stored = data.stored_bytes()) {
    hash.update(std::as_bytes(stored->pixels));
    hash.update(std::as_bytes(stored->labels));
    return hash.finish();
  }
  const dataflow::Example example(data.description());
  for (std::int64_t i = 0; i < data.size(); ++i) {
    data.read(i, {}, example.features());
    data.read_label(i, example.label());
    for (const dataflow::InputTensor& feature : example.features()) hash.update(feature.bytes());
    hash.update(example.label().bytes());
  }
  return hash.finish();
}

}  // namespace arbalest::jobs
