// The __shared__ variables of all kernels in the program. In C++ each of them is a single static variable. The stand-in
// finds them in the program's symbol table and gives every block separate contents.
#pragma once

#include <cstddef>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// Fills shared memory with values that no kernel may rely on. Throws std::runtime_error for a program without symbols.
void poison_shared_memory();

// Whether the bytes belong to a __shared__ variable.
bool is_shared_variable(const std::byte* address, std::size_t bytes);

// Save and restore the contents, for blocks that take turns.
std::vector<std::byte> save_shared_memory();
void restore_shared_memory(const std::vector<std::byte>& contents);

}  // namespace arbalest::tests::cuda_stand_in
