// Input: 'i' and a file of images, or 'l' and a file of labels. The other file is whole.
#include "dataflow/input/formats/idx.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"
#include "tests/support/idx_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  static const fuzz::InputDirectory directory;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  const bool is_images = data[0] == 'i';
  const std::string images = "train-images-idx3-ubyte";
  const std::string labels = "train-labels-idx1-ubyte";
  directory.write(is_images ? images : labels, rest);
  directory.write(is_images ? labels : images, is_images ? tests::idx_labels(2) : tests::idx_images(2, 4, 3));
  fuzz::is_refused({engine::ErrorKind::kData}, [] {
    const dataflow::IdxSource source{.name = "idx",
                                     .directory = directory.path(),
                                     .expected = dataflow::image_input({1, 4, 3}, 10),
                                     .normalization = {}};
    const auto dataset = dataflow::load_idx(source, dataflow::Split::kTrain);
    if (dataset->size() != 2) std::abort();
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      const std::int32_t label = dataflow::class_of(*dataset, i);
      if (label < 0 || label >= 10) std::abort();
    }
  });
  return 0;
}
