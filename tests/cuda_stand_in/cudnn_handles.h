// The handles of cuDNN. Their names come from cuDNN's headers.
#pragma once

#include <cudnn.h>

#include <set>
#include <string>

#include "tests/cuda_stand_in/convolution.h"

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
  std::set<std::string> warm;  // kinds of calls that this handle has already made (call.h)
};

struct cudnnTensorStruct {
  arbalest::tests::cuda_stand_in::Extents extents;
};

struct cudnnFilterStruct {
  arbalest::tests::cuda_stand_in::Extents extents;
};

struct cudnnConvolutionStruct {
  arbalest::tests::cuda_stand_in::Geometry geometry;  // without its extents
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
