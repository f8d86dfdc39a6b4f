// Input: a file of labeled sparse rows, raw or compressed.
#include <cmath>
#include <cstdlib>

#include "dataflow/input/formats/libsvm.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"

using namespace arbalest;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputDirectory directory;
  directory.write("rows.libsvm", std::span(data, size));
  fuzz::is_refused({engine::ErrorKind::kData}, [&] {
    const dataflow::SparseRows rows = dataflow::load_libsvm(directory.path() / "rows.libsvm", 100);
    if (rows.starts.size() != rows.labels.size() + 1 || rows.starts.back() != rows.entries()) std::abort();
    for (std::size_t row = 0; row < rows.labels.size(); ++row) {
      for (auto e = static_cast<std::size_t>(rows.starts[row]); e < static_cast<std::size_t>(rows.starts[row + 1]);
           ++e) {
        const bool ascends = e == static_cast<std::size_t>(rows.starts[row]) || rows.indices[e] > rows.indices[e - 1];
        if (!ascends || rows.indices[e] < 0 || rows.indices[e] >= 100 || !std::isfinite(rows.values[e])) std::abort();
      }
    }
  });
  return 0;
}
