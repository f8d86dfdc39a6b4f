// XXH3-128 of a stream of bytes (xxHash): finds damage at the speed of memory; it is no protection against forgery.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace arbalest::jobs {

class Xxh3 {
 public:
  Xxh3();

  void update(std::span<const std::byte> bytes);
  // 32 lower-case hexadecimal digits, as the program xxh128sum prints them.
  std::string finish() const;

 private:
  struct State;
  struct Release {
    void operator()(State* state) const;
  };
  std::unique_ptr<State, Release> state_;
};

}  // namespace arbalest::jobs
