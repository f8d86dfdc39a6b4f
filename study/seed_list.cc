#include "study/seed_list.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "engine/base/error.h"
#include "options/text/octal_numbers.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::size_t kMostSeeds = 1000;

std::uint64_t parse_seed(std::string_view word, const std::string& all) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), seed);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) {
    fail(ErrorKind::kUsage, "--seeds '{}': '{}' is no seed; write a range as 1..5 or a list as 1,2,7", all, word);
  }
  if (has_leading_zero(word)) {
    fail(ErrorKind::kUsage, "--seeds '{}': {} has a leading zero, which means octal in a job file; write {}", all, word,
         seed);
  }
  return seed;
}

}  // namespace

std::vector<std::uint64_t> parse_seeds(const std::string& text) {
  if (text.empty()) fail(ErrorKind::kUsage, "--seeds is empty; write a range as 1..5 or a list as 1,2,7");
  std::vector<std::uint64_t> seeds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t dots = word.find("..");
    const std::uint64_t first = parse_seed(word.substr(0, dots), text);
    const std::uint64_t last = dots == std::string::npos ? first : parse_seed(word.substr(dots + 2), text);
    if (last < first)
      fail(ErrorKind::kUsage, "--seeds '{}': {} is empty; the first seed must be the smaller", text, word);
    if (last - first >= kMostSeeds || seeds.size() + (last - first) >= kMostSeeds) {
      fail(ErrorKind::kUsage, "--seeds '{}': more than {} seeds", text, kMostSeeds);
    }
    for (std::uint64_t i = 0; i <= last - first; ++i) seeds.push_back(first + i);
  }
  std::vector<std::uint64_t> sorted = seeds;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    fail(ErrorKind::kUsage, "--seeds '{}': {} is given twice; both runs would have the same bytes", text, *twice);
  }
  return seeds;
}

}  // namespace arbalest::jobs
