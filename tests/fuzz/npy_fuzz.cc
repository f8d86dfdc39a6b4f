// Input: a letter for what the file holds (u: images of bytes, f: images of numbers, l: labels, d: ids, t: targets),
// then the .npy file. The file that belongs to it is whole.
#include "dataflow/input/formats/npy.h"
#include "dataflow/input/formats/ratings.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"
#include "tests/support/npy_writer.h"

namespace {

using namespace arbalest;

std::string array(const std::string& type, const std::string& shape, const std::string& content) {
  return tests::npy_file("{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }", content);
}

template <typename Pixel>
void load_images(const fuzz::InputDirectory& directory) {
  const auto dataset = dataflow::load_npy<Pixel>({.name = "npy",
                                                  .examples = directory.path() / "a.npy",
                                                  .labels = directory.path() / "b.npy",
                                                  .expected = dataflow::image_input({1, 2, 3}, 10),
                                                  .normalization = {}});
  if (dataset->size() != 2) std::abort();
}

void load_ids(const fuzz::InputDirectory& directory) {
  const auto dataset = dataflow::load_ratings({.name = "npy",
                                               .ids = directory.path() / "a.npy",
                                               .targets = directory.path() / "b.npy",
                                               .expected = dataflow::ratings_input({10, 20})});
  if (dataset->size() != 2) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputDirectory directory;
  if (size == 0) return 0;
  const char kind = static_cast<char>(data[0]);
  const bool is_second = kind == 'l' || kind == 't';
  const bool is_ids = kind == 'd' || kind == 't';
  const std::string other = kind == 'l'   ? array("|u1", "2, 2, 3", std::string(12, '\1'))
                            : kind == 't' ? array("|u1", "2, 2", std::string(4, '\1'))
                            : kind == 'd' ? array("<f4", "2,", std::string(8, '\0'))
                                          : array("|u1", "2,", std::string(2, '\1'));
  directory.write(is_second ? "b.npy" : "a.npy", std::span(data + 1, size - 1));
  directory.write(is_second ? "a.npy" : "b.npy", other);
  fuzz::is_refused({engine::ErrorKind::kData}, [&] {
    if (is_ids) {
      load_ids(directory);
    } else if (kind == 'f') {
      load_images<float>(directory);
    } else {
      load_images<std::uint8_t>(directory);
    }
  });
  return 0;
}
