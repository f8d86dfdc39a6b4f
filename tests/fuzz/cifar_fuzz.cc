// Input: 'h' and a file of CIFAR-100, or another byte and a file of CIFAR-10.
#include "dataflow/input/formats/cifar.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  static const fuzz::InputDirectory directory;
  if (size == 0) return 0;
  const bool is_100 = data[0] == 'h';
  directory.write(is_100 ? "test.bin" : "test_batch.bin", std::span(data + 1, size - 1));
  fuzz::is_refused({engine::ErrorKind::kData}, [&] {
    const dataflow::CifarSource source{.version = is_100 ? dataflow::CifarVersion::k100 : dataflow::CifarVersion::k10,
                                       .directory = directory.path(),
                                       .normalization = {}};
    std::vector<std::string> warnings;
    const auto dataset = dataflow::load_cifar(source, dataflow::Split::kTest, warnings);
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      const std::int32_t label = dataflow::class_of(*dataset, i);
      if (label < 0 || label >= dataset->description().classes()) std::abort();
    }
  });
  return 0;
}
