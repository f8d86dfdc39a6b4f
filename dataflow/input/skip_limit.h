// How many examples that cannot be read may be left out of mini-batches.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace arbalest::dataflow {

struct SkipLimit {
  double fraction = 1.0;  // of the examples of an epoch, or of an evaluated set; in (0, 1]

  // The most examples of `examples` that may be left out. At least 1, so that one damaged file does not end the work on
  // a small set.
  std::int64_t of(std::int64_t examples) const noexcept;
};

inline constexpr std::size_t kNamedSkips = 3;  // examples that an error names

// Throws ErrorKind::kData if more examples were left out than the limit allows. `set`: what they are of, such as
// "mnist train"; `first`: the errors of the first of them.
void check_skipped(const std::string& set, std::int64_t skipped, std::int64_t examples, const SkipLimit& limit,
                   std::span<const std::string> first);

}  // namespace arbalest::dataflow
