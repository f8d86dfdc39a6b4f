#include "dataflow/input/formats/npy_array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <regex>

#include <fmt/ranges.h>

#include "engine/error.h"

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
    fail(ErrorKind::kData, "{}: is no .npy file, or of a version that is not known", file.path().string());
  }
  std::array<std::uint8_t, 4> length{};
  file.read(std::span(length).first(start[6] == 1 ? 2 : 4), "length of the header");
  const std::size_t bytes =
      length[0] | std::size_t{length[1]} << 8U | std::size_t{length[2]} << 16U | std::size_t{length[3]} << 24U;
  if (bytes > kLongestHeader) {
    fail(ErrorKind::kData, "{}: its header of {} bytes is too long to be true", file.path().string(), bytes);
  }
  std::vector<std::uint8_t> text(bytes);
  file.read(text, "header");
  return {text.begin(), text.end()};
}

// `pattern` finds the key with its value.
std::string value_of(const std::string& text, const char* key, const std::regex& pattern, const InputFile& file) {
  std::smatch match;
  if (std::regex_search(text, match, pattern)) return match[1];
  fail(ErrorKind::kData, "{}: its header says no '{}' that is known: {}", file.path().string(), key,
       text.substr(0, text.find('\n')));
}

// Reads the rest of the file. Checks the header's sizes against the file before anything of that size is allocated.
template <typename T>
std::vector<T> read_content(InputFile& file, const NpyHeader& header, std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  for (const std::uint64_t extent : header.shape) {
    if (extent == 0) fail(ErrorKind::kData, "{}: holds no data: a dimension is 0", file.path().string());
    if (bytes > file.most_left() / extent) {
      fail(ErrorKind::kData, "{}: is truncated: its header promises ({}) elements of {} bytes; get the file again",
           file.path().string(), fmt::join(header.shape, ", "), element_bytes);
    }
    bytes *= extent;
  }
  std::vector<T> content(bytes / sizeof(T));
  file.read({reinterpret_cast<std::uint8_t*>(content.data()), bytes}, "data that its header promises");
  file.expect_end();
  return content;
}

// `doubles`: the numbers as the file has them, if it has float64.
std::vector<float> read_numbers(InputFile& file, const NpyHeader& header, std::string_view what,
                                std::vector<double>& doubles) {
  if (header.type == "<f4") return read_content<float>(file, header, sizeof(float));
  if (header.type != "<f8") {
    fail(ErrorKind::kData,
         "{}: is of type '{}'; {}s are floating-point numbers, little endian ('<f4', numpy.float32, or '<f8'); "
         "astype(numpy.float32) makes them so",
         file.path().string(), header.type, what);
  }
  doubles = read_content<double>(file, header, sizeof(double));
  std::vector<float> numbers(doubles.size());
  std::ranges::transform(doubles, numbers.begin(), [](double number) { return static_cast<float>(number); });
  return numbers;
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
    fail(ErrorKind::kData, "{}: holds pickled Python objects, which are programs and no data; save an array of numbers",
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
    if (error != std::errc()) fail(ErrorKind::kData, "{}: its shape ({}) cannot be true", file.path().string(), shape);
    header.shape.push_back(extent);
    at = end;
  }
  return header;
}

std::vector<std::uint8_t> read_npy_content(InputFile& file, const NpyHeader& header, std::uint64_t element_bytes) {
  return read_content<std::uint8_t>(file, header, element_bytes);
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

std::vector<float> read_numbers(InputFile& file, const NpyHeader& header, std::string_view what) {
  std::vector<double> unused;
  return read_numbers(file, header, what, unused);
}

std::vector<float> read_floats(InputFile& file, const NpyHeader& header, std::string_view what,
                               std::size_t per_record) {
  std::vector<double> doubles;
  std::vector<float> numbers = read_numbers(file, header, what, doubles);
  const auto wrong = std::ranges::find_if_not(numbers, [](float number) { return std::isfinite(number); });
  if (wrong == numbers.end()) return numbers;
  const auto place = static_cast<std::size_t>(wrong - numbers.begin());
  const double number = doubles.empty() ? static_cast<double>(*wrong) : doubles[place];
  const std::string which = per_record == 1 ? "" : fmt::format("element {}: ", place % per_record);
  fail(ErrorKind::kData, "{}: record {}: {}{} {} is {}; correct the record, or leave it out of both files",
       file.path().string(), place / per_record, which, what, std::isnan(number) ? std::nan("") : number,
       std::isfinite(number) ? "beyond float32" : "no finite number");
}

}  // namespace arbalest::dataflow
