// Numbers in the types that CUDA's libraries read and write. Sums are in double precision.
#pragma once

#include <cstddef>

namespace arbalest::tests::cuda_stand_in {

enum class Number {
  kFloat32,
  kTensorFloat32,  // float32 in memory, read with 10 bits of its fraction
  kBFloat16
};

std::size_t size_of(Number number);
double read(Number number, const void* data, std::size_t index);
// data[index] <- alpha * value + beta * data[index]. With beta = 0, data[index] is not read.
struct Scaling {
  float alpha = 1;
  float beta = 0;
};
void write(Number number, Scaling scaling, double value, void* data, std::size_t index);

}  // namespace arbalest::tests::cuda_stand_in
