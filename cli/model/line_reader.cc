#include "cli/model/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dataflow/input/formats/text_lines.h"
#include "engine/base/error.h"

namespace arbalest::cli {

namespace {

constexpr std::size_t kLongest = 1 << 16;  // bytes of a line; a path has at most 4,096

}  // namespace

bool LineReader::read_more() {
  constexpr int kWaitMilliseconds = 200;  // a signal may arrive right before the wait, which it then does not end
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  for (;;) {
    if (stop_signal_ != 0) return false;
    const int ready = poll(&input, 1, kWaitMilliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<char, 1 << 14> bytes{};
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      engine::fail(engine::ErrorKind::kData, "standard input cannot be read: {}", std::strerror(errno));
    }
    text_.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }
}

std::string LineReader::finish(std::string line) {
  if (std::exchange(is_first_, false)) dataflow::remove_byte_order_mark(line);
  return line;
}

std::optional<std::string> LineReader::next() {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = text_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      if (line.ends_with('\r')) line.pop_back();
      return finish(std::move(line));
    }
    searched = text_.size();
    if (searched > kLongest) {
      engine::fail(engine::ErrorKind::kData, "standard input has a line of more than {} bytes; write one path per line",
                   kLongest);
    }
    if (read_more()) continue;
    if (stop_signal_ != 0 || text_.empty()) return std::nullopt;
    return finish(std::exchange(text_, ""));  // the last line has no break
  }
}

}  // namespace arbalest::cli
