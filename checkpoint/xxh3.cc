#include "checkpoint/xxh3.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#define XXH_INLINE_ALL  // a few functions of ours are smaller than one more library to install
#include <xxhash.h>

#include "engine/base/error.h"

namespace arbalest::jobs {

struct Xxh3::State {
  XXH3_state_t of_library;
};

void Xxh3::Release::operator()(State* state) const { delete state; }

Xxh3::Xxh3() : state_(new State) { ARBALEST_CHECK(XXH3_128bits_reset(&state_->of_library) == XXH_OK); }

void Xxh3::update(std::span<const std::byte> bytes) {
  ARBALEST_CHECK(XXH3_128bits_update(&state_->of_library, bytes.data(), bytes.size()) == XXH_OK);
}

std::string Xxh3::finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->of_library));
  return fmt::format("{:02x}", fmt::join(canonical.digest, ""));
}

}  // namespace arbalest::jobs
