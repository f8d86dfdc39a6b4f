#include "dataflow/input/formats/records/shard_names.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace fs = std::filesystem;
using engine::ErrorKind;
using engine::fail;

namespace {

// A name of the form <begin><number>-of-<count><end><extension>.
struct ShardName {
  std::string begin;
  std::string end;
  std::int64_t number = 0;
  std::int64_t count = 0;
  fs::path path;
};

using ShardSet = std::vector<ShardName>;

std::optional<ShardName> parse(const fs::path& path) {
  static const std::regex kNumbered("(.*[^0-9]|)([0-9]{1,18})-of-([0-9]{1,18})([^.]*).*");
  std::smatch match;
  const std::string name = path.filename().string();
  if (!std::regex_match(name, match, kNumbered)) return std::nullopt;
  return ShardName{match[1], match[4], std::stoll(match[2]), std::stoll(match[3]), path};
}

// "train-...-of-00005.tfrecord", after one of the set's files.
std::string name_of(const ShardSet& set) {
  static const std::regex kNumber("[0-9]+-of-([0-9]+[^.]*)");
  const ShardName& first = set.front();
  const std::string rest = first.path.filename().string().substr(first.begin.size());
  return first.begin + std::regex_replace(rest, kNumber, "...-of-$1");
}

void check_counts(const ShardSet& set) {
  const auto other = std::ranges::find_if(set, [&](const ShardName& s) { return s.count != set.front().count; });
  if (other == set.end()) return;
  fail(ErrorKind::kData,
       "{}: names a set of {} shards, and {} one of {}: shards of two versions of a set lie in one folder; remove one "
       "version, or give the job a pattern that matches one of them",
       set.front().path.string(), set.front().count, other->path.filename().string(), other->count);
}

void check_distinct(const ShardSet& sorted) {
  const auto twice = std::ranges::adjacent_find(sorted, {}, &ShardName::number);
  if (twice == sorted.end()) return;
  fail(
      ErrorKind::kData,
      "{}: is the same shard as {}: its examples would count twice; remove one of the files, or give the job a pattern "
      "that matches one of them",
      std::next(twice)->path.string(), twice->path.filename().string());
}

void check_numbers(const ShardSet& sorted) {
  constexpr std::size_t kMostNamed = 5;
  const bool from_one = sorted.front().number > 0 && sorted.back().number == sorted.back().count;
  const std::int64_t first = from_one ? 1 : 0;
  const std::int64_t last = first + sorted.front().count - 1;
  if (sorted.back().number > last) {
    fail(ErrorKind::kData, "{}: the number of this shard is beyond the {} shards that its name states",
         sorted.back().path.string(), sorted.back().count);
  }
  if (std::cmp_equal(sorted.size(), sorted.front().count)) return;
  std::vector<std::int64_t> missing;
  std::int64_t next = first;
  for (const ShardName& shard : sorted) {
    for (; next < shard.number && missing.size() < kMostNamed; ++next) missing.push_back(next);
    next = shard.number + 1;
  }
  for (; next <= last && missing.size() < kMostNamed; ++next) missing.push_back(next);
  const std::int64_t unnamed = sorted.front().count - std::ssize(sorted) - std::ssize(missing);
  fail(ErrorKind::kData, "{}: dataset is incomplete: there are {} of the shards {}; missing: {}{}",
       sorted.front().path.parent_path().string(), sorted.size(), name_of(sorted), fmt::join(missing, ", "),
       unnamed > 0 ? fmt::format(" and {} more", unnamed) : "");
}

}  // namespace

void check_complete(std::span<const fs::path> paths) {
  std::map<std::pair<std::string, std::string>, ShardSet> sets;  // by begin and end of the names
  for (const fs::path& path : paths) {
    if (auto shard = parse(path)) sets[{shard->begin, shard->end}].push_back(*std::move(shard));
  }
  for (auto& [name, set] : sets) {
    std::ranges::stable_sort(set, {}, &ShardName::number);
    check_counts(set);
    check_distinct(set);
    check_numbers(set);
  }
}

}  // namespace arbalest::dataflow
