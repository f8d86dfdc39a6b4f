#include "dataflow/input/skip_limit.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace arbalest::dataflow {

std::int64_t SkipLimit::of(std::int64_t examples) const noexcept {
  constexpr double kRounding = 1e-9;  // 0.29 * 100 is below 29
  const double allowed = std::floor(fraction * static_cast<double>(examples) + kRounding);
  return std::max(static_cast<std::int64_t>(allowed), std::int64_t{1});
}

void check_skipped(const std::string& set, std::int64_t skipped, std::int64_t examples, const SkipLimit& limit,
                   std::span<const std::string> first) {
  const std::int64_t allowed = limit.of(examples);
  if (skipped <= allowed) return;
  engine::fail(engine::ErrorKind::kData,
               "{}: {} of {} images cannot be read, but max_skipped: {} allows {}; the first: {}; bring the files back "
               "(`arbalest data verify` names all that are missing or damaged), or raise max_skipped in the job's "
               "decoding",
               set, skipped, examples, limit.fraction, allowed,
               fmt::join(first.first(std::min(first.size(), kNamedSkips)), "; "));
}

}  // namespace arbalest::dataflow
