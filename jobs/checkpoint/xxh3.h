// XXH3-128 of a stream of bytes (xxHash): finds damage at the speed of memory; it is no protection against forgery.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

struct XXH3_state_s;

namespace arbalest::jobs {

class Xxh3 {
 public:
  Xxh3();

  void update(std::span<const std::byte> bytes);
  // 32 lower-case hexadecimal digits, as the program xxh128sum prints them.
  std::string finish() const;

 private:
  struct Release {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Release> state_;
};

}  // namespace arbalest::jobs
