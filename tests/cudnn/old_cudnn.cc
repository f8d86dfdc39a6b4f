// A library of an old cuDNN's version, which lacks what a question without a GPU needs.
#include <cstddef>

extern "C" std::size_t cudnnGetVersion() { return 90100; }
