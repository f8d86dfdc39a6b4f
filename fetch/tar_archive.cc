#include "fetch/tar_archive.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataflow/input/formats/input_file.h"
#include "engine/base/error.h"
#include "saved_model/atomic_file.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::size_t kBlock = 512;
using Header = std::array<std::uint8_t, kBlock>;

struct Field {
  std::size_t at;
  std::size_t bytes;
};
// POSIX.1-1988 (ustar).
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagic{257, 5};
constexpr Field kPrefix{345, 155};

std::string_view bytes_of(const Header& header, Field field) {
  return {reinterpret_cast<const char*>(header.data()) + field.at, field.bytes};
}

// The text before the first NUL.
std::string text_of(const Header& header, Field field) {
  const std::string_view bytes = bytes_of(header, field);
  return std::string(bytes.substr(0, bytes.find('\0')));
}

// None if the field is no octal number.
std::optional<std::uint64_t> octal_of(const Header& header, Field field) {
  std::string_view digits = bytes_of(header, field);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find_first_of(std::string_view(" \0", 2)));
  if (digits.empty() || digits.find_first_not_of("01234567") != std::string_view::npos) return std::nullopt;
  return std::accumulate(digits.begin(), digits.end(), std::uint64_t{0}, [](std::uint64_t number, char digit) {
    return 8 * number + static_cast<std::uint64_t>(digit - '0');
  });
}

// The checksum counts its own field as spaces.
bool has_right_checksum(const Header& header) {
  std::uint64_t sum = kChecksum.bytes * std::uint64_t{' '};
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (i < kChecksum.at || i >= kChecksum.at + kChecksum.bytes) sum += header[i];
  }
  return octal_of(header, kChecksum) == sum;
}

std::string path_of(const Header& header) {
  const std::string name = text_of(header, kName);
  const bool is_ustar = bytes_of(header, kMagic) == "ustar";
  const std::string prefix = is_ustar ? text_of(header, kPrefix) : "";
  return prefix.empty() ? name : prefix + "/" + name;
}

bool is_file(const Header& header) { return header[kType] == '0' || header[kType] == '\0'; }

class Unpacking {
 public:
  Unpacking(const std::filesystem::path& archive, const std::vector<ArchiveMember>& members,
            const std::filesystem::path& directory, std::uint64_t most_bytes)
      : archive_(archive), directory_(directory), file_(archive), waiting_(members), most_bytes_(most_bytes) {}

  void run() {
    Header header{};
    while (!waiting_.empty()) {
      file_.read(header, "the header of a file in the archive");
      if (std::ranges::all_of(header, [](std::uint8_t byte) { return byte == 0; })) break;
      const std::optional<std::uint64_t> size = octal_of(header, kSize);
      if (!has_right_checksum(header) || !size) fail_archive("a header in it is damaged");
      if (file_.offset() > most_bytes_ || *size > most_bytes_ - file_.offset()) {
        fail_archive(fmt::format("it unpacks to more than {} bytes", most_bytes_));
      }
      take(header, *size);
      skip((kBlock - *size % kBlock) % kBlock);
    }
    if (!waiting_.empty()) fail_archive(fmt::format("it has no file '{}'", waiting_.front().path));
  }

 private:
  [[noreturn]] void fail_archive(const std::string& problem) const {
    fail(ErrorKind::kData, "{}: {}; get the archive again", archive_.string(), problem);
  }

  void take(const Header& header, std::uint64_t size) {
    const std::string path = path_of(header);
    const auto member = std::ranges::find(waiting_, path, &ArchiveMember::path);
    if (member == waiting_.end() || !is_file(header)) return skip(size);
    const bool fits = member->bytes == 0 ? size <= kMostTextBytes : size == member->bytes;
    if (!fits) fail_archive(fmt::format("'{}' has {} bytes", path, size));
    write(*member, size);
    waiting_.erase(member);
  }

  void write(const ArchiveMember& member, std::uint64_t size) {
    AtomicFile to(directory_ / member.name);
    Sha256 hash;
    for_each_piece(size, [&](std::span<const std::uint8_t> piece) {
      hash.update(std::as_bytes(piece));
      to.write(std::as_bytes(piece));
    });
    if (!member.sha256.empty() && hash.finish() != member.sha256) {
      fail_archive(fmt::format("'{}' differs from the published file", member.path));
    }
    to.commit();
  }

  void skip(std::uint64_t bytes) {
    for_each_piece(bytes, [](std::span<const std::uint8_t>) {});
  }

  template <typename Use>
  void for_each_piece(std::uint64_t bytes, const Use& use) {
    while (bytes > 0) {
      const std::span<std::uint8_t> piece(piece_.data(), std::min<std::uint64_t>(bytes, piece_.size()));
      file_.read(piece, "a file in the archive");
      use(piece);
      bytes -= piece.size();
    }
  }

  const std::filesystem::path& archive_;
  const std::filesystem::path& directory_;
  dataflow::InputFile file_;
  std::vector<ArchiveMember> waiting_;
  const std::uint64_t most_bytes_;
  std::array<std::uint8_t, 1U << 16U> piece_{};
};

}  // namespace

void unpack(const std::filesystem::path& archive, const std::vector<ArchiveMember>& members,
            const std::filesystem::path& directory, std::uint64_t most_bytes) {
  Unpacking(archive, members, directory, most_bytes).run();
}

}  // namespace arbalest::jobs
