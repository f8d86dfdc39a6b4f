// Tensors whose values an ONNX file holds: weights, shapes, and numbers in formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "onnx/model.pb.h"

namespace arbalest::jobs {

// Stands in a list of integers for the number of examples, which is free. It comes from the shape of a value.
inline constexpr std::int64_t kFreeBatch = std::numeric_limits<std::int64_t>::min();

struct Constant {
  std::vector<std::int64_t> dims = {};  // empty: a single number
  bool is_integer = false;
  std::vector<float> numbers = {};          // [dims], unless is_integer
  std::vector<std::int64_t> integers = {};  // [dims], if is_integer
  std::string name = {};                    // of the initializer; "" for computed ones

  std::size_t size() const noexcept { return is_integer ? integers.size() : numbers.size(); }
  bool is_single() const noexcept { return size() == 1; }
  // The single number.
  double single() const { return is_integer ? static_cast<double>(integers[0]) : static_cast<double>(numbers[0]); }
};

// The number in half precision (FLOAT16, BFLOAT16), widened again. Other types leave it as it is. `type`:
// onnx::Tensor::DataType.
float rounded_to(std::int64_t type, float number);

// More than this many elements are refused: a few bytes of a file can ask for any number of equal values.
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 31;
inline constexpr int kMostDimensions = 16;

// Product of `dims`. Throws ErrorKind::kCheckpoint for a negative extent or more than kMostElements, naming `name`.
std::int64_t elements_of(const std::vector<std::int64_t>& dims, const std::string& name);

// Whether the elements have a type that constant_of() reads: numbers of 8 to 64 bits, and truth values.
bool has_numbers(const onnx::Tensor& tensor);

// Why it cannot be read, if it has no numbers.
std::string type_problem(const onnx::Tensor& tensor);

// Bytes of the elements in raw_data. Throws ErrorKind::kCheckpoint as elements_of does, and for types that are not
// numbers.
std::uint64_t raw_bytes(const onnx::Tensor& tensor);

// Floating-point numbers become float32, and the others 64-bit integers. The tensor's data must be in the message.
// Throws ErrorKind::kCheckpoint, naming the tensor, if the data does not fit the shape.
Constant constant_of(const onnx::Tensor& tensor);

}  // namespace arbalest::jobs
