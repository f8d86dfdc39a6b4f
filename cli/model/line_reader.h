// Reads lines from standard input, until a signal asks to stop.
#pragma once

#include <atomic>
#include <optional>
#include <string>

namespace arbalest::cli {

class LineReader {
 public:
  explicit LineReader(const std::atomic<int>& stop_signal) : stop_signal_(stop_signal) {}

  // The next line without its line break; none at the end, or once the signal is set. Throws kData if standard input
  // cannot be read.
  std::optional<std::string> next();

 private:
  // Returns false at the end, or once the signal is set.
  bool read_more();

  // Ends the reading of `line`, which may be the first one and begin with a byte order mark.
  std::string finish(std::string line);

  const std::atomic<int>& stop_signal_;
  bool is_first_ = true;
  std::string text_;  // read, and not returned yet
};

}  // namespace arbalest::cli
