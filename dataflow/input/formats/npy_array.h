// Reads one array from a NumPy .npy file (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/input/formats/input_file.h"
#include "engine/host/memory_budget.h"

namespace arbalest::dataflow {

struct NpyHeader {
  std::string type;  // "|u1"
  std::vector<std::uint64_t> shape;
};

struct NpyArray {
  NpyHeader header;
  std::vector<std::uint8_t> bytes;
};

// The memory that an array may take, and what the user can change if it needs more.
struct NpyMemory {
  engine::host::MemoryBudget budget{};
  std::string_view remedy = "use fewer examples, or more memory";
};

// Throws ErrorKind::kData, naming the file, if it is not a .npy file, in Fortran order, or not of a simple type (such
// as pickled objects).
NpyHeader read_npy_header(InputFile& file);

// All functions below read the rest of the file. They throw ErrorKind::kData, naming the file, if it is truncated or
// too long, and kOutOfMemory, before they allocate, if what they return does not fit into `memory`. Nothing else of
// that size takes memory.

// `element_bytes`: size of one element.
std::vector<std::uint8_t> read_npy_content(InputFile& file, const NpyHeader& header, std::uint64_t element_bytes,
                                           const NpyMemory& memory = {});

// Bytes of an integer of this type; 0 if the type is not a supported integer.
std::size_t integer_bytes(const std::string& type);
// An element of an integer array of `bytes` bytes each. Unsigned values above 2^62 are returned as 2^62.
std::int64_t integer_at(const NpyArray& array, std::size_t bytes, std::size_t index);

// Gets a piece of the integers, and the place of its first one. Must throw if one does not fit into 32 bits.
using CheckIntegers = std::function<void(std::size_t first, std::span<const std::int64_t> integers)>;
// Reads an array of a type that integer_bytes() knows.
std::vector<std::int32_t> read_integers(InputFile& file, const NpyHeader& header, const NpyMemory& memory,
                                        const CheckIntegers& check);

// Reads all numbers of an array of type '<f4' or '<f8' as float32, also those that are not finite. Throws
// ErrorKind::kData for another type. `what`: what the numbers are, for errors: "target".
std::vector<float> read_numbers(InputFile& file, const NpyHeader& header, std::string_view what,
                                const NpyMemory& memory = {});
// Reads them as read_numbers does, `per_record` to a record. Also throws for a number that is not finite as float32;
// the error names the record and, if a record has several numbers, the element.
std::vector<float> read_floats(InputFile& file, const NpyHeader& header, std::string_view what, std::size_t per_record,
                               const NpyMemory& memory = {});

}  // namespace arbalest::dataflow
