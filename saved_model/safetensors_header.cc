#include "saved_model/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using nlohmann::json;

namespace {

// Parses the header as a stream, so that a hostile header costs no more memory than its own size: no nesting beyond the
// format's, and no numbers outside shape and data_offsets.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  std::vector<SafetensorsEntry> take_entries() { return std::move(entries_); }

  bool key(string_t& name) override {
    switch (place_) {
      case Place::kTop:
        if (!names_.insert(name).second) fail(fmt::format("tensor '{}' is listed twice", name));
        tensor_ = name;
        break;
      case Place::kMetadata:
        if (!metadata_keys_.insert(name).second) fail(fmt::format("__metadata__ has the key '{}' twice", name));
        break;
      default:
        if (name == "dtype") {
          begin_field(kDtype, "dtype");
        } else if (name == "shape") {
          begin_field(kShape, "shape");
        } else if (name == "data_offsets") {
          begin_field(kOffsets, "data_offsets");
        } else {
          fail(fmt::format("tensor '{}' has an unknown field '{}'", tensor_, name));
        }
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && tensor_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      fields_ = 0;
      field_ = 0;
      entries_.push_back({.name = tensor_, .dtype = {}, .shape = {}});
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && fields_ != (kDtype | kShape | kOffsets)) {
      fail(fmt::format("tensor '{}' lacks dtype, shape or data_offsets", tensor_));
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || field_ == kDtype) unexpected("an array");
    place_ = Place::kArray;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    SafetensorsEntry& entry = entries_.back();
    if (field_ == kShape) {
      for (const std::uint64_t extent : numbers_) entry.shape.append(static_cast<std::int64_t>(extent));
    } else if (numbers_.size() == 2) {
      std::tie(entry.begin, entry.end) = std::pair(numbers_[0], numbers_[1]);
    } else {
      fail(fmt::format("tensor '{}': data_offsets needs two numbers", tensor_));
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kArray) unexpected("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("tensor '{}': {} is out of range", tensor_, value));
    }
    numbers_.push_back(value);
    if (numbers_.size() > engine::Shape::kMaxRank) fail(fmt::format("tensor '{}' has too many extents", tensor_));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || field_ != kDtype) unexpected("a string");
    entries_.back().dtype = value;
    return true;
  }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { unexpected("a fraction"); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  // The library's own message would quote the input, however long.
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kArray, kEnd };
  static constexpr unsigned kDtype = 1;
  static constexpr unsigned kShape = 2;
  static constexpr unsigned kOffsets = 4;

  [[noreturn]] static void fail(const std::string& reason) {
    engine::fail(ErrorKind::kCheckpoint, "the header is damaged: {}", reason);
  }

  [[noreturn]] void unexpected(const char* what) const {
    fail(tensor_.empty() ? fmt::format("{} where the object of tensors should be", what)
                         : fmt::format("unexpected {} in '{}'", what, tensor_));
  }

  void begin_field(unsigned field, const char* name) {
    if ((fields_ & field) != 0) fail(fmt::format("tensor '{}' has the field '{}' twice", tensor_, name));
    fields_ |= field;
    field_ = field;
  }

  Place place_ = Place::kStart;
  std::string tensor_;                  // key of the tensor being read
  unsigned fields_ = 0;                 // fields of this tensor seen so far
  unsigned field_ = 0;                  // field being read
  std::vector<std::uint64_t> numbers_;  // numbers of the array being read
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> metadata_keys_;
  std::vector<SafetensorsEntry> entries_;
};

// Size of an element; 0 for a type that is not of the format.
std::uint64_t element_bytes(std::string_view dtype) {
  struct Type {
    std::string_view name;
    std::uint64_t bytes;
  };
  static constexpr Type kTypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
                                    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  const auto* const found = std::ranges::find(kTypes, dtype, &Type::name);
  return found == std::end(kTypes) ? 0 : found->bytes;
}

// Size of a tensor of this type and shape.
std::uint64_t tensor_bytes(const SafetensorsEntry& entry) {
  std::uint64_t bytes = element_bytes(entry.dtype);
  for (const std::int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}': the size of its shape overflows", entry.name);
    }
  }
  return bytes;
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view header, std::uint64_t data_bytes,
                                                       SafetensorsTypes types) {
  if (!header.starts_with('{')) engine::fail(ErrorKind::kCheckpoint, "the header does not begin with '{{'");
  // The JSON library would take a NUL for the end of its input.
  if (header.find('\0') != std::string_view::npos) engine::fail(ErrorKind::kCheckpoint, "the header holds a NUL byte");
  HeaderReader reader;
  ARBALEST_CHECK(json::sax_parse(header.begin(), header.end(), &reader));

  std::vector<SafetensorsEntry> entries = reader.take_entries();
  std::ranges::stable_sort(entries, {},
                           [](const SafetensorsEntry& entry) { return std::pair(entry.begin, entry.end); });
  std::uint64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (types == SafetensorsTypes::kFloat32 && entry.dtype != "F32") {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' is of type '{}'; this program reads F32", entry.name,
                   entry.dtype);
    }
    if (element_bytes(entry.dtype) == 0) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' is of the unknown type '{}'", entry.name, entry.dtype);
    }
    if (entry.begin != covered || entry.end < entry.begin) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' lies at bytes {} to {}, but the tensors before it end at {}",
                   entry.name, entry.begin, entry.end, covered);
    }
    if (entry.end - entry.begin != tensor_bytes(entry)) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' has {} bytes, but its shape needs {}", entry.name,
                   entry.end - entry.begin, tensor_bytes(entry));
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    engine::fail(ErrorKind::kCheckpoint, "the tensors take {} bytes, but {} follow the header", covered, data_bytes);
  }
  return entries;
}

}  // namespace arbalest::jobs
