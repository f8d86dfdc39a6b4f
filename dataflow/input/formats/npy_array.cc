#include "dataflow/input/formats/npy_array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <regex>
#include <span>

#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

static_assert(std::endian::native == std::endian::little);  // .npy numbers are read in the file's byte order

constexpr std::size_t kLongestHeader = 4096;

// The text of the header, a Python dictionary.
std::string read_header_text(InputFile& file) {
  constexpr std::array<std::uint8_t, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
  std::array<std::uint8_t, 8> start{};  // magic, major and minor version
  file.read(start, "magic number");
  if (!std::equal(kMagic.begin(), kMagic.end(), start.begin()) || start[6] < 1 || start[6] > 3) {
    fail(ErrorKind::kData, "{}: is not an .npy file, or has an unknown version", file.path().string());
  }
  std::array<std::uint8_t, 4> length{};
  file.read(std::span(length).first(start[6] == 1 ? 2 : 4), "length of the header");
  const std::size_t bytes =
      length[0] | std::size_t{length[1]} << 8U | std::size_t{length[2]} << 16U | std::size_t{length[3]} << 24U;
  if (bytes > kLongestHeader) {
    fail(ErrorKind::kData, "{}: its header cannot have {} bytes", file.path().string(), bytes);
  }
  std::vector<std::uint8_t> text(bytes);
  file.read(text, "header");
  return {text.begin(), text.end()};
}

// `pattern` finds the key with its value.
std::string value_of(const std::string& text, const char* key, const std::regex& pattern, const InputFile& file) {
  std::smatch match;
  if (std::regex_search(text, match, pattern)) return match[1];
  fail(ErrorKind::kData, "{}: its header has no valid '{}': {}", file.path().string(), key,
       text.substr(0, text.find('\n')));
}

// The number of elements. Throws if the file cannot hold what the header promises, before anything of that size is
// allocated.
std::uint64_t checked_elements(const InputFile& file, const NpyHeader& header, std::uint64_t element_bytes) {
  std::uint64_t elements = 1;
  const std::uint64_t most = file.most_left() / element_bytes;
  for (const std::uint64_t extent : header.shape) {
    if (extent == 0) fail(ErrorKind::kData, "{}: holds no data: a dimension is 0", file.path().string());
    if (elements > most / extent) {
      fail(ErrorKind::kData, "{}: is truncated: its header promises ({}) elements of {} bytes; get the file again",
           file.path().string(), fmt::join(header.shape, ", "), element_bytes);
    }
    elements *= extent;
  }
  return elements;
}

constexpr const char* kContent = "data that its header promises";
constexpr std::uint64_t kElementsAtOnce = 1 << 15;  // of an array that is not kept as it is stored

template <typename T>
std::span<std::uint8_t> bytes_of(std::vector<T>& content) {
  return {reinterpret_cast<std::uint8_t*>(content.data()), content.size() * sizeof(T)};
}

// Reads the rest of the file, which is kept as it is stored.
template <typename T>
std::vector<T> read_content(InputFile& file, const NpyHeader& header, std::uint64_t element_bytes,
                            const NpyMemory& memory) {
  const std::uint64_t bytes = checked_elements(file, header, element_bytes) * element_bytes;
  memory.budget.require(bytes, file.path().string(), memory.remedy);
  std::vector<T> content(bytes / sizeof(T));
  file.read(bytes_of(content), kContent);
  file.expect_end();
  return content;
}

// Reads float64 numbers piece by piece, so that nothing but their float32 copy takes memory. `look` gets each piece,
// and the place of its first number.
std::vector<float> read_doubles(InputFile& file, const NpyHeader& header, const NpyMemory& memory,
                                const std::function<void(std::size_t, std::span<const double>)>& look) {
  const std::uint64_t elements = checked_elements(file, header, sizeof(double));
  memory.budget.require(elements * sizeof(float), file.path().string(), memory.remedy);
  std::vector<float> numbers(elements);
  std::vector<double> piece;
  for (std::size_t first = 0; first < elements; first += piece.size()) {
    piece.resize(std::min<std::size_t>(kElementsAtOnce, elements - first));
    file.read(bytes_of(piece), kContent);
    std::ranges::transform(piece, numbers.begin() + static_cast<std::ptrdiff_t>(first),
                           [](double number) { return static_cast<float>(number); });
    look(first, piece);
  }
  file.expect_end();
  return numbers;
}

void check_number_type(const InputFile& file, const NpyHeader& header, std::string_view what) {
  if (header.type == "<f4" || header.type == "<f8") return;
  fail(ErrorKind::kData,
       "{}: is of type '{}'; {}s are floating-point numbers, little endian ('<f4', numpy.float32, or '<f8'); "
       "astype(numpy.float32) makes them so",
       file.path().string(), header.type, what);
}

// A number that is not finite as float32.
struct WrongNumber {
  std::size_t place = 0;
  double number = 0.0;  // as stored
};

template <typename Number>
std::optional<WrongNumber> first_wrong(std::span<const Number> numbers) {
  const auto wrong =
      std::ranges::find_if_not(numbers, [](Number number) { return std::isfinite(static_cast<float>(number)); });
  if (wrong == numbers.end()) return std::nullopt;
  return WrongNumber{static_cast<std::size_t>(wrong - numbers.begin()), static_cast<double>(*wrong)};
}

}  // namespace

NpyHeader read_npy_header(InputFile& file) {
  static const std::regex kType("'descr'\\s*:\\s*('[^']*'|\\[)");
  static const std::regex kOrder("'fortran_order'\\s*:\\s*(True|False)");
  static const std::regex kShape("'shape'\\s*:\\s*\\(([0-9, ]*)\\)");
  const std::string text = read_header_text(file);
  NpyHeader header;
  header.type = value_of(text, "descr", kType, file);
  if (header.type == "[") {
    fail(ErrorKind::kData, "{}: holds records of several fields; save an array of one type", file.path().string());
  }
  header.type = header.type.substr(1, header.type.size() - 2);
  if (header.type.find('O') != std::string::npos) {
    fail(ErrorKind::kData, "{}: holds pickled Python objects, which are programs, not data; save an array of numbers",
         file.path().string());
  }
  if (value_of(text, "fortran_order", kOrder, file) == "True") {
    fail(ErrorKind::kData, "{}: is in Fortran order; save numpy.ascontiguousarray() of it", file.path().string());
  }
  const std::string shape = value_of(text, "shape", kShape, file);
  for (const char* at = shape.c_str(); *at != '\0';) {
    std::uint64_t extent = 0;
    const auto [end, error] = std::from_chars(at, shape.c_str() + shape.size(), extent);
    if (end == at) {
      ++at;
      continue;
    }
    if (error != std::errc()) fail(ErrorKind::kData, "{}: its shape ({}) is impossible", file.path().string(), shape);
    header.shape.push_back(extent);
    at = end;
  }
  return header;
}

std::vector<std::uint8_t> read_npy_content(InputFile& file, const NpyHeader& header, std::uint64_t element_bytes,
                                           const NpyMemory& memory) {
  return read_content<std::uint8_t>(file, header, element_bytes, memory);
}

std::size_t integer_bytes(const std::string& type) {
  const bool is_integer =
      type.size() == 3 && (type[1] == 'i' || type[1] == 'u') && (type[0] == '<' || (type[0] == '|' && type[2] == '1'));
  const bool has_size = is_integer && std::string("1248").find(type[2]) != std::string::npos;
  return has_size ? static_cast<std::size_t>(type[2] - '0') : 0;
}

std::int64_t integer_at(const NpyArray& array, std::size_t bytes, std::size_t index) {
  std::uint64_t value = 0;
  std::memcpy(&value, array.bytes.data() + index * bytes, bytes);
  if (array.header.type[1] == 'u') return static_cast<std::int64_t>(std::min(value, std::uint64_t{1} << 62U));
  const std::size_t unused = 64 - 8 * bytes;
  return static_cast<std::int64_t>(value << unused) >> unused;
}

std::vector<std::int32_t> read_integers(InputFile& file, const NpyHeader& header, const NpyMemory& memory,
                                        const CheckIntegers& check) {
  const std::size_t bytes = integer_bytes(header.type);
  ARBALEST_CHECK(bytes > 0);
  const std::uint64_t elements = checked_elements(file, header, bytes);
  memory.budget.require(elements * sizeof(std::int32_t), file.path().string(), memory.remedy);
  std::vector<std::int32_t> kept(elements);
  NpyArray stored{header, {}};
  std::vector<std::int64_t> piece;
  for (std::size_t first = 0; first < elements; first += piece.size()) {
    piece.resize(std::min<std::size_t>(kElementsAtOnce, elements - first));
    stored.bytes.resize(piece.size() * bytes);
    file.read(stored.bytes, kContent);
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = integer_at(stored, bytes, i);
    check(first, piece);
    std::ranges::transform(piece, kept.begin() + static_cast<std::ptrdiff_t>(first),
                           [](std::int64_t integer) { return static_cast<std::int32_t>(integer); });
  }
  file.expect_end();
  return kept;
}

std::vector<float> read_numbers(InputFile& file, const NpyHeader& header, std::string_view what,
                                const NpyMemory& memory) {
  check_number_type(file, header, what);
  if (header.type == "<f4") return read_content<float>(file, header, sizeof(float), memory);
  return read_doubles(file, header, memory, [](std::size_t, std::span<const double>) {});
}

std::vector<float> read_floats(InputFile& file, const NpyHeader& header, std::string_view what, std::size_t per_record,
                               const NpyMemory& memory) {
  check_number_type(file, header, what);
  std::vector<float> numbers;
  std::optional<WrongNumber> wrong;
  if (header.type == "<f4") {
    numbers = read_content<float>(file, header, sizeof(float), memory);
    wrong = first_wrong(std::span<const float>(numbers));
  } else {
    numbers = read_doubles(file, header, memory, [&](std::size_t first, std::span<const double> piece) {
      if (wrong) return;
      wrong = first_wrong(piece);
      if (wrong) wrong->place += first;
    });
  }
  if (!wrong) return numbers;
  const std::string which = per_record == 1 ? "" : fmt::format("element {}: ", wrong->place % per_record);
  fail(ErrorKind::kData, "{}: record {}: {}{} {} is {}; correct the record, or leave it out of both files",
       file.path().string(), wrong->place / per_record, which, what,
       std::isnan(wrong->number) ? std::nan("") : wrong->number,
       std::isfinite(wrong->number) ? "beyond float32" : "no finite number");
}

}  // namespace arbalest::dataflow
