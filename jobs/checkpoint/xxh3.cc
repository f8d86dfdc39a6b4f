#include "jobs/checkpoint/xxh3.h"

#include <new>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "engine/error.h"

namespace arbalest::jobs {

void Xxh3::Release::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

Xxh3::Xxh3() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  ARBALEST_CHECK(XXH3_128bits_reset(state_.get()) == XXH_OK);
}

void Xxh3::update(std::span<const std::byte> bytes) {
  ARBALEST_CHECK(XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()) == XXH_OK);
}

std::string Xxh3::finish() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
  return fmt::format("{:02x}", fmt::join(canonical.digest, ""));
}

}  // namespace arbalest::jobs
