// The __shared__ variables of all kernels in the program. In C++ each of them is a single static variable. The stand-in
// finds them in the program's symbol table and gives every block separate contents.
#pragma once

#include <cstddef>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// What a block has written, while another block runs.
struct SharedContents {
  std::vector<std::size_t> variables;  // indices of those that were written
  std::vector<std::byte> bytes;        // of all of them, in this order
};

// Fills shared memory with values that no kernel may rely on. Throws std::runtime_error for a program without symbols.
void poison_shared_memory();

// For blocks that take turns: moves what was written out of shared memory, which is poisoned then, and back again.
SharedContents take_shared_memory();
void put_shared_memory(const SharedContents& contents);

// Whether the bytes belong to a __shared__ variable.
bool is_shared_variable(const std::byte* address, std::size_t bytes);

}  // namespace arbalest::tests::cuda_stand_in
