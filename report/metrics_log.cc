#include "report/metrics_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <string_view>
#include <vector>

#include "report/run_lock.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDamagedEnding = ".damaged";

fs::path directory_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Lines one behind another that are no JSON objects.
struct Damage {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

// `text`: whole lines. A blank line is no damage.
std::vector<Damage> damages_in(std::string_view text) {
  std::vector<Damage> found;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
    const std::string_view line = text.substr(begin, end - begin);
    const std::size_t bytes = line.size() + 1;
    const bool is_blank = line.find_first_not_of(' ') == std::string_view::npos;
    if (!is_blank && !nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false).is_object()) {
      const bool goes_on = !found.empty() && found.back().begin + found.back().bytes == begin;
      if (!goes_on) found.push_back({begin, 0});
      found.back().bytes += bytes;
    }
    begin = end + 1;
  }
  return found;
}

// A line of this length with its end; without the event if it is too short for it.
std::string line_in_place_of(std::size_t bytes) {
  constexpr std::string_view kEvent = R"({"event":"damaged"})";
  std::string line(bytes, ' ');
  line.back() = '\n';
  const std::string_view object = bytes > kEvent.size() ? kEvent : "{}";
  if (bytes > object.size()) line.replace(0, object.size(), object);
  return line;
}

class OpenFile {
 public:
  explicit OpenFile(int file) : file_(file) {}
  ~OpenFile() {
    if (file_ >= 0) close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, int file)
    : path_(std::move(path)), file_(file), directory_(identity_of(directory_of(path_))) {}

MetricsLog::~MetricsLog() { close(file_); }

void MetricsLog::append(const char* event, const nlohmann::ordered_json& row) {
  nlohmann::ordered_json line = {{"event", event}};
  line.update(row);
  waiting_ += line.dump() + '\n';
  ++waiting_lines_;
  write_waiting();
}

bool MetricsLog::is_in_place() const {
  struct stat opened {};
  if (fstat(file_, &opened) != 0) fail_write(path_, errno);
  return identity_of(path_) == FileIdentity{opened.st_dev, opened.st_ino};
}

// Writes to a deleted file succeed, so nothing else would tell that they are lost.
void MetricsLog::check_place() {
  if (is_in_place()) return;
  struct stat found {};
  const bool is_missing = stat(path_.c_str(), &found) != 0;
  if (is_missing && errno != ENOENT && errno != ENOTDIR) return;  // whether it is there cannot be told
  // Another run may be in a directory of the same name by now.
  if (identity_of(directory_of(path_)) != directory_ || is_locked(path_)) {
    throw RunGone(fmt::format(
        "the directory '{}' was deleted or renamed while its run was training, so nothing can be saved there",
        directory_of(path_).string()));
  }
  if (is_missing) return restore();
  engine::fail(engine::ErrorKind::kOutOfMemory,
               "'{}' was replaced by another file while its run was training; move that file away", path_.string());
}

// The open descriptor keeps the bytes of the deleted file.
void MetricsLog::restore() {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) fail_write(path_, errno);
  static_cast<void>(flock(file, LOCK_EX | LOCK_NB));  // as claim_run() does
  try {
    std::string piece(1U << 20U, '\0');
    for (off_t at = 0;;) {
      const ssize_t read = pread(file_, piece.data(), piece.size(), at);
      if (read < 0) fail_write(path_, errno);
      if (read == 0) break;
      write_fully(file, std::as_bytes(std::span(piece).first(static_cast<std::size_t>(read))), path_);
      at += read;
    }
  } catch (...) {
    unlink(path_.c_str());
    close(file);
    throw;
  }
  close(file_);
  file_ = file;
  restored_ = true;
}

void MetricsLog::write_waiting() {
  check_place();
  if (waiting_.empty()) return;
  const std::uint64_t before = file_bytes();
  try {
    write_fully(file_, std::as_bytes(std::span(waiting_)), path_);
  } catch (const engine::Error&) {
    // A part of a line may have been written. A file can be cut on a full disk, too.
    if (ftruncate(file_, static_cast<off_t>(before)) != 0) fail_write(path_, errno);
    throw;
  }
  waiting_.clear();
  waiting_lines_ = 0;
}

std::uint64_t MetricsLog::file_bytes() const {
  struct stat status {};
  if (fstat(file_, &status) != 0) fail_write(path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t MetricsLog::bytes() const { return file_bytes() + waiting_.size(); }

std::string MetricsLog::text_before(std::uint64_t end) const {
  std::string text(std::min(end, file_bytes()), '\0');
  const std::span<std::byte> all = std::as_writable_bytes(std::span(text));
  std::size_t known = 0;
  while (known < all.size()) {
    const ssize_t read = pread(file_, &all[known], all.size() - known, static_cast<off_t>(known));
    if (read < 0) fail_write(path_, errno);
    if (read == 0) break;
    known += static_cast<std::size_t>(read);
  }
  text.resize(known);
  return text;
}

void MetricsLog::write_damaged(const std::string& text) const {
  const fs::path path = path_.string() + kDamagedEnding;
  const OpenFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file.get() < 0) fail_write(path, errno);
  write_fully(file.get(), std::as_bytes(std::span(text)), path);
  if (fsync(file.get()) != 0 && errno != EINVAL) fail_write(path, errno);
}

// The log's own descriptor only appends, wherever it is asked to write.
void MetricsLog::overwrite(std::uint64_t begin, std::string_view text) const {
  const OpenFile file(open(path_.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0) fail_write(path_, errno);
  if (lseek(file.get(), static_cast<off_t>(begin), SEEK_SET) < 0) fail_write(path_, errno);
  write_fully(file.get(), std::as_bytes(std::span(text)), path_);
}

MetricsLog::Cut MetricsLog::cut(std::uint64_t bytes) {
  ARBALEST_CHECK(waiting_.empty());
  const std::uint64_t size = file_bytes();
  const std::string text = text_before(bytes);
  const std::size_t end = text.rfind('\n') + 1;  // 0 without a line
  const std::vector<Damage> damages = damages_in(std::string_view(text).substr(0, end));
  std::string damaged;
  for (const Damage& damage : damages) damaged += text.substr(damage.begin, damage.bytes);
  damaged += text.substr(end);  // the part of a line that a power loss has left
  if (!damaged.empty()) write_damaged(damaged);
  for (const Damage& damage : damages) overwrite(damage.begin, line_in_place_of(damage.bytes));
  if (size > end && ftruncate(file_, static_cast<off_t>(end)) != 0) fail_write(path_, errno);
  return {end, damaged.size()};
}

void MetricsLog::sync() {
  write_waiting();
  // EINVAL: the file cannot be synced, such as a pipe.
  if (fsync(file_) == 0 || errno == EINVAL) return;
  sync_failed_ = true;
  fail_write(path_, errno);
}

}  // namespace arbalest::jobs
