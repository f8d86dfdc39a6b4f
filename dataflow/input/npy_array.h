// One array of NumPy's .npy files
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/input/input_file.h"

namespace arbalest::dataflow {

struct NpyHeader {
  std::string type;  // "|u1"
  std::vector<std::uint64_t> shape;
};

struct NpyArray {
  NpyHeader header;
  std::vector<std::uint8_t> bytes;
};

// Both throw ErrorKind::kData, naming the file, if it is no .npy file, truncated or too long, in Fortran order, or of
// no simple type (pickled objects among them).
NpyHeader read_npy_header(InputFile& file);
// The rest of the file; an element has `element_bytes`.
std::vector<std::uint8_t> read_npy_content(InputFile& file, const NpyHeader& header, std::uint64_t element_bytes);

// Bytes of an integer, 0 if the type is none that is read.
std::size_t integer_bytes(const std::string& type);
// Of an array of such; what is beyond int64 is 2^62.
std::int64_t integer_at(const NpyArray& array, std::size_t bytes, std::size_t index);

// All numbers of an array of type '<f4' or '<f8', `per_record` for each record. Throws ErrorKind::kData if the type is
// another, and for a number that is not finite as float32, naming the record and, of several, the element; `what` the
// numbers are: "target".
std::vector<float> read_floats(InputFile& file, const NpyHeader& header, std::string_view what, std::size_t per_record);

}  // namespace arbalest::dataflow
