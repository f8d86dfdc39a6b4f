#include "interchange/import/graph/constant.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/elementwise/bfloat16.h"
#include "saved_model/half.h"

namespace arbalest::jobs {

using engine::ErrorKind;

static_assert(std::endian::native == std::endian::little, "ONNX holds little-endian numbers");

namespace {

// Returns 0 for types that are no numbers.
std::uint64_t element_bytes(const onnx::Tensor& tensor) {
  switch (tensor.data_type()) {
    case onnx::Tensor::UINT8:
    case onnx::Tensor::INT8:
    case onnx::Tensor::BOOL: return 1;
    case onnx::Tensor::UINT16:
    case onnx::Tensor::INT16:
    case onnx::Tensor::FLOAT16:
    case onnx::Tensor::BFLOAT16: return 2;
    case onnx::Tensor::FLOAT:
    case onnx::Tensor::INT32:
    case onnx::Tensor::UINT32: return 4;
    case onnx::Tensor::INT64:
    case onnx::Tensor::UINT64:
    case onnx::Tensor::DOUBLE: return 8;
    default: return 0;
  }
}

[[noreturn]] void fail_size(const onnx::Tensor& tensor, std::size_t found, std::int64_t expected) {
  engine::fail(ErrorKind::kCheckpoint, "tensor '{}' has {} elements, but its shape has {}", tensor.name(), found,
               expected);
}

// Appends the elements of raw_data, which are of type T, as `convert` makes them.
template <typename T, typename Target, typename Convert>
void read_raw(const std::string& raw, std::vector<Target>& target, Convert convert) {
  target.reserve(raw.size() / sizeof(T));
  for (std::size_t at = 0; at < raw.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, raw.data() + at, sizeof(T));
    target.push_back(convert(value));
  }
}

constexpr auto to_number = [](auto value) { return static_cast<float>(value); };
constexpr auto to_integer = [](auto value) { return static_cast<std::int64_t>(value); };
constexpr auto of_half = [](auto bits) { return from_half(static_cast<std::uint16_t>(bits)); };
constexpr auto of_bfloat16 = [](auto bits) {
  return engine::elementwise::to_float(engine::BFloat16{static_cast<std::uint16_t>(bits)});
};

void read_raw_data(const onnx::Tensor& tensor, Constant& constant) {
  const std::string& raw = tensor.raw_data();
  switch (tensor.data_type()) {
    case onnx::Tensor::FLOAT: return read_raw<float>(raw, constant.numbers, to_number);
    case onnx::Tensor::DOUBLE: return read_raw<double>(raw, constant.numbers, to_number);
    case onnx::Tensor::FLOAT16: return read_raw<std::uint16_t>(raw, constant.numbers, of_half);
    case onnx::Tensor::BFLOAT16: return read_raw<std::uint16_t>(raw, constant.numbers, of_bfloat16);
    case onnx::Tensor::INT8: return read_raw<std::int8_t>(raw, constant.integers, to_integer);
    case onnx::Tensor::UINT8:
    case onnx::Tensor::BOOL: return read_raw<std::uint8_t>(raw, constant.integers, to_integer);
    case onnx::Tensor::INT16: return read_raw<std::int16_t>(raw, constant.integers, to_integer);
    case onnx::Tensor::UINT16: return read_raw<std::uint16_t>(raw, constant.integers, to_integer);
    case onnx::Tensor::INT32: return read_raw<std::int32_t>(raw, constant.integers, to_integer);
    case onnx::Tensor::UINT32: return read_raw<std::uint32_t>(raw, constant.integers, to_integer);
    case onnx::Tensor::INT64: return read_raw<std::int64_t>(raw, constant.integers, to_integer);
    default:  // element_bytes() has refused all others
      return read_raw<std::uint64_t>(raw, constant.integers, to_integer);
  }
}

template <typename List, typename Target, typename Convert>
void read_list(const List& list, std::vector<Target>& target, Convert convert) {
  target.reserve(static_cast<std::size_t>(list.size()));
  for (const auto value : list) target.push_back(convert(value));
}

// The lists of the types. Small types share the list of 32-bit integers.
void read_lists(const onnx::Tensor& tensor, Constant& constant) {
  switch (tensor.data_type()) {
    case onnx::Tensor::FLOAT: return read_list(tensor.float_data(), constant.numbers, to_number);
    case onnx::Tensor::DOUBLE: return read_list(tensor.double_data(), constant.numbers, to_number);
    case onnx::Tensor::FLOAT16: return read_list(tensor.int32_data(), constant.numbers, of_half);
    case onnx::Tensor::BFLOAT16: return read_list(tensor.int32_data(), constant.numbers, of_bfloat16);
    case onnx::Tensor::INT64: return read_list(tensor.int64_data(), constant.integers, to_integer);
    default: return read_list(tensor.int32_data(), constant.integers, to_integer);
  }
}

bool is_floating(int type) {
  return type == onnx::Tensor::FLOAT || type == onnx::Tensor::DOUBLE || type == onnx::Tensor::FLOAT16 ||
         type == onnx::Tensor::BFLOAT16;
}

}  // namespace

float rounded_to(std::int64_t type, float number) {
  if (type == onnx::Tensor::FLOAT16) return from_half(to_half(number));
  if (type == onnx::Tensor::BFLOAT16) return engine::elementwise::to_float(engine::elementwise::to_bfloat16(number));
  return number;
}

std::int64_t elements_of(const std::vector<std::int64_t>& dims, const std::string& name) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : dims) {
    if (extent < 0) engine::fail(ErrorKind::kCheckpoint, "tensor '{}' has the extent {}", name, extent);
    // Both factors are below 2^32, unless the extent alone is too much.
    if (extent > kMostElements || elements * extent > kMostElements) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' has more than {} elements", name, kMostElements);
    }
    elements *= extent;
  }
  return elements;
}

bool has_numbers(const onnx::Tensor& tensor) { return element_bytes(tensor) != 0; }

std::string type_problem(const onnx::Tensor& tensor) {
  const bool is_known = onnx::Tensor::DataType_IsValid(tensor.data_type());
  return fmt::format("its constant '{}' has elements of type {}, which cannot be imported", tensor.name(),
                     is_known ? onnx::Tensor::DataType_Name(tensor.data_type()) : std::to_string(tensor.data_type()));
}

std::uint64_t raw_bytes(const onnx::Tensor& tensor) {
  if (!has_numbers(tensor)) engine::fail(ErrorKind::kCheckpoint, "{}", type_problem(tensor));
  const std::vector<std::int64_t> dims(tensor.dims().begin(), tensor.dims().end());
  return static_cast<std::uint64_t>(elements_of(dims, tensor.name())) * element_bytes(tensor);
}

Constant constant_of(const onnx::Tensor& tensor) {
  if (tensor.dims_size() > kMostDimensions) {
    engine::fail(ErrorKind::kInvalidJob, "tensor '{}' has {} dimensions; at most {} are known", tensor.name(),
                 tensor.dims_size(), kMostDimensions);
  }
  Constant constant{.dims = {tensor.dims().begin(), tensor.dims().end()},
                    .is_integer = !is_floating(tensor.data_type()),
                    .numbers = {},
                    .integers = {},
                    .name = tensor.name()};
  const std::int64_t elements = elements_of(constant.dims, tensor.name());
  const std::uint64_t bytes = raw_bytes(tensor);
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != bytes) {
      engine::fail(ErrorKind::kCheckpoint, "tensor '{}' has {} bytes, but its shape needs {}", tensor.name(),
                   tensor.raw_data().size(), bytes);
    }
    read_raw_data(tensor, constant);
  } else {
    read_lists(tensor, constant);
  }
  if (constant.size() != static_cast<std::size_t>(elements)) fail_size(tensor, constant.size(), elements);
  return constant;
}

}  // namespace arbalest::jobs
