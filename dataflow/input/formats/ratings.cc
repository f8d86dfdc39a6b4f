#include "dataflow/input/formats/ratings.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "dataflow/input/formats/npy_array.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr const char* kRemedy = "use fewer ratings, or more memory";

std::vector<std::int32_t> read_ids(const RatingsSource& source) {
  InputFile file(source.ids, true);
  const NpyHeader header = read_npy_header(file);
  const std::string path = source.ids.string();
  if (integer_bytes(header.type) == 0) {
    fail(ErrorKind::kData, "{}: is of type '{}'; ids are integers, little endian (such as '<i4', numpy.int32)", path,
         header.type);
  }
  const std::span<const std::int64_t> counts = source.expected.ids();
  const std::vector<std::uint64_t>& shape = header.shape;
  if (shape.size() != 2 || shape[1] != counts.size()) {
    fail(ErrorKind::kData, "{}: has the shape ({}), but the job's ids need (n, {}): data.ratings.sizes has {} numbers",
         path, fmt::join(shape, ", "), counts.size(), counts.size());
  }
  return read_integers(
      file, header, {source.budget, kRemedy}, [&](std::size_t first, std::span<const std::int64_t> ids) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
          const std::size_t column = (first + i) % counts.size();
          if (ids[i] >= 0 && ids[i] < counts[column]) continue;
          fail(ErrorKind::kData, "{}: record {}: column {}: id {} is not in [0, {}); number the ids from 0, {}", path,
               (first + i) / counts.size(), column, ids[i], counts[column],
               ids[i] < 0 ? "or leave the record out"
                          : fmt::format("or write how many there are to data.ratings.sizes[{}]", column));
        }
      });
}

std::vector<float> read_targets(const RatingsSource& source) {
  InputFile file(source.targets, true);
  const NpyHeader header = read_npy_header(file);
  if (header.shape.size() != 1) {
    fail(ErrorKind::kData, "{}: has the shape ({}), but targets have one dimension", file.path().string(),
         fmt::join(header.shape, ", "));
  }
  return read_floats(file, header, "target", 1, {source.budget, kRemedy});
}

}  // namespace

Ratings::Ratings(std::string name, InputDescription description, std::vector<std::int32_t> ids,
                 std::vector<float> targets)
    : name_(std::move(name)), description_(std::move(description)), ids_(std::move(ids)), targets_(std::move(targets)) {
  ARBALEST_CHECK(ids_.size() == targets_.size() * description_.ids().size());
}

std::unique_ptr<Ratings> Ratings::split_off(std::string name, std::span<const std::int64_t> ratings) {
  const std::size_t columns = description_.ids().size();
  std::vector<std::int32_t> ids[2];  // [0]: kept, [1]: taken out
  std::vector<float> targets[2];
  const std::size_t sizes[2] = {targets_.size() - ratings.size(), ratings.size()};
  for (const std::size_t part : {0U, 1U}) {
    ids[part].reserve(sizes[part] * columns);
    targets[part].reserve(sizes[part]);
  }
  auto next = ratings.begin();
  for (std::size_t rating = 0; rating < targets_.size(); ++rating) {
    const std::size_t part = next != ratings.end() && std::cmp_equal(*next, rating) ? 1 : 0;
    if (part == 1) ++next;
    const auto first = ids_.begin() + static_cast<std::ptrdiff_t>(rating * columns);
    ids[part].insert(ids[part].end(), first, first + static_cast<std::ptrdiff_t>(columns));
    targets[part].push_back(targets_[rating]);
  }
  ARBALEST_CHECK(next == ratings.end());
  ids_ = std::move(ids[0]);
  targets_ = std::move(targets[0]);
  return std::make_unique<Ratings>(std::move(name), description_, std::move(ids[1]), std::move(targets[1]));
}

void Ratings::read(std::int64_t example, const ExamplePosition& /*position*/,
                   std::span<const InputTensor> features) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  const std::span ids = features.front().as<std::int32_t>();
  std::copy_n(ids_.data() + static_cast<std::size_t>(example) * ids.size(), ids.size(), ids.data());
}

void Ratings::read_label(std::int64_t example, const InputTensor& label) const {
  ARBALEST_CHECK(example >= 0 && example < size());
  label.as<float>().front() = targets_[static_cast<std::size_t>(example)];
}

std::size_t Ratings::memory_bytes() const noexcept {
  return ids_.size() * sizeof(std::int32_t) + targets_.size() * sizeof(float);
}

std::unique_ptr<Ratings> load_ratings(const RatingsSource& source) {
  std::vector<std::int32_t> ids = read_ids(source);
  const std::size_t records = ids.size() / source.expected.ids().size();
  std::vector<float> targets = read_targets(source);
  if (records != targets.size()) {
    fail(ErrorKind::kData, "{} holds {} records but {} holds {} targets; the files do not belong together",
         source.ids.string(), records, source.targets.string(), targets.size());
  }
  return std::make_unique<Ratings>(source.name, source.expected, std::move(ids), std::move(targets));
}

}  // namespace arbalest::dataflow
