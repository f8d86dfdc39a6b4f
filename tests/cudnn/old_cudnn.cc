// A library with the version of an old cuDNN, which does not support queries without a GPU.
#include <cstddef>

extern "C" std::size_t cudnnGetVersion() { return 90100; }
