#include "jobs/run/data/dataset_fingerprint.h"

#include <algorithm>
#include <span>
#include <vector>

#include "engine/error.h"
#include "jobs/export/sha256.h"

namespace arbalest::jobs {

namespace {

template <typename T>
void add(Sha256& hash, const T& value) {
  hash.update(std::as_bytes(std::span(&value, 1)));
}

// An example that cannot be read counts as zeros: the run leaves it out, or ends.
void add_example(Sha256& hash, const dataflow::Dataset& data, std::int64_t example, std::span<float> values) {
  try {
    data.read(example, {}, values.data());
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kData) throw;
    std::ranges::fill(values, 0.0F);
  }
  hash.update(std::as_bytes(values));
}

}  // namespace

std::string dataset_fingerprint(const dataflow::Dataset& data) { return dataset_fingerprint(data, 0, data.size()); }

std::string dataset_fingerprint(const dataflow::Dataset& data, std::int64_t first, std::int64_t examples) {
  constexpr std::int64_t kMostRead = 64;
  Sha256 hash;
  add(hash, examples);
  add(hash, data.description().classes);
  for (const std::int64_t extent : data.description().image) add(hash, extent);
  for (std::int64_t i = 0; i < examples; ++i) add(hash, data.label(first + i));
  std::vector<float> values(static_cast<std::size_t>(data.description().image.elements()));
  const std::int64_t read = std::min(kMostRead, examples);
  for (std::int64_t i = 0; i < read; ++i) add_example(hash, data, first + i * examples / read, values);
  return hash.finish();
}

}  // namespace arbalest::jobs
