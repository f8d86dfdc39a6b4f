// The __shared__ variables of all kernels in the program. In C++ each of them is a single static variable. The stand-in
// finds them in the program's symbol table and gives every block separate contents.
#pragma once

#include <cstddef>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// A kernel's thread is about to use the __shared__ variables of the function that `site_is_known` belongs to. Sets it,
// until the variables are poisoned or taken away; while it is set, a thread need not tell. Throws std::runtime_error
// for a program without symbols.
void use_shared_memory(bool& site_is_known);

// What a block has in the variables that it uses, while another block runs.
struct SharedContents {
  std::vector<std::size_t> functions;  // indices of those whose variables are in use
  std::vector<std::byte> bytes;        // of all these variables, in this order
};

// Fills the shared memory in use with values that no kernel may rely on. Nothing is in use then.
void poison_shared_memory();

// For blocks that take turns: moves what is in use out of shared memory, which is poisoned then, and back again.
SharedContents take_shared_memory();
void put_shared_memory(const SharedContents& contents);

// Whether the bytes belong to a __shared__ variable in use.
bool is_shared_variable(const std::byte* address, std::size_t bytes);

}  // namespace arbalest::tests::cuda_stand_in
