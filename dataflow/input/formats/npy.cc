#include "dataflow/input/formats/npy.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "dataflow/input/formats/input_file.h"
#include "dataflow/input/formats/npy_array.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

// Drops dimensions of extent 1, which do not change the order of the elements.
std::vector<std::uint64_t> squeezed(std::vector<std::uint64_t> extents) {
  std::erase(extents, 1U);
  return extents;
}

// Checks the shape of the images' array, whatever its type.
void check_shape(const SplitFiles& source, const NpyHeader& header) {
  const std::vector<std::uint64_t> expected(source.expected.image().begin(), source.expected.image().end());
  const std::vector<std::uint64_t>& shape = header.shape;
  if (!shape.empty() && squeezed({shape.begin() + 1, shape.end()}) == squeezed(expected)) return;
  fail(ErrorKind::kData,
       "{}: has the shape ({}), but the job's images need (n, {}), where extents of 1 may be left out; correct "
       "data.npy.channels, height and width, or transpose or reshape the array",
       source.examples.string(), fmt::join(shape, ", "), fmt::join(expected, ", "));
}

// What makes the images fit into memory.
template <typename Pixel>
std::string_view remedy_of(const SplitFiles& source) {
  const engine::Shape& image = source.expected.image();
  if (image[1] == 1 && image[2] == 1) return "use fewer rows, or more memory";  // they are no images
  return std::is_same_v<Pixel, float>
             ? "store the pixels as bytes (uint8, data.npy.pixels: UINT8), which take a quarter, use more memory, or "
               "keep the images as files or as records (`arbalest data convert`), which are read from the disk"
             : "use more memory, or keep the images as files (data.images) or as records (data.tfrecord, `arbalest "
               "data "
               "convert`), which are read from the disk";
}

template <typename Pixel>
std::vector<Pixel> read_images(const SplitFiles& source) {
  InputFile file(source.examples, true);
  const NpyHeader header = read_npy_header(file);
  const bool are_bytes = header.type == "|u1";
  if (are_bytes != std::is_same_v<Pixel, std::uint8_t>) {
    fail(ErrorKind::kData, "{}: is of type '{}'; {}", file.path().string(), header.type,
         are_bytes ? "with data.npy.pixels: FLOAT32 images are numbers ('<f4' or '<f8'); astype(numpy.float32) makes "
                     "them so"
                   : "images are unsigned bytes ('|u1', numpy.uint8), or numbers ('<f4' or '<f8') with "
                     "data.npy.pixels: FLOAT32");
  }
  check_shape(source, header);
  const NpyMemory memory{source.budget, remedy_of<Pixel>(source)};
  if constexpr (std::is_same_v<Pixel, float>) {
    return read_floats(file, header, "pixel", static_cast<std::size_t>(source.expected.image().elements()), memory);
  } else {
    return read_npy_content(file, header, 1, memory);
  }
}

std::vector<std::int32_t> read_labels(const SplitFiles& source) {
  InputFile file(source.labels, true);
  const NpyHeader header = read_npy_header(file);
  if (integer_bytes(header.type) == 0) {
    fail(ErrorKind::kData, "{}: is of type '{}'; labels are integers, little endian (such as '<i8', numpy.int64)",
         file.path().string(), header.type);
  }
  if (header.shape.size() != 1) {
    fail(ErrorKind::kData,
         "{}: has the shape ({}), but labels have one dimension; use ravel(), or argmax(1) for one-hot vectors",
         file.path().string(), fmt::join(header.shape, ", "));
  }
  const std::int64_t classes = source.expected.classes();
  return read_integers(file, header, {source.budget}, [&](std::size_t first, std::span<const std::int64_t> labels) {
    const auto wrong = std::ranges::find_if(labels, [&](std::int64_t label) { return label < 0 || label >= classes; });
    if (wrong == labels.end()) return;
    fail(ErrorKind::kData,
         "{}: record {}: label {} is not in [0, {}); labels begin with 0, and the job's 'classes' says how many "
         "there are",
         file.path().string(), first + static_cast<std::size_t>(wrong - labels.begin()), *wrong, classes);
  });
}

}  // namespace

template <typename Pixel>
std::unique_ptr<StoredImages<Pixel>> load_npy(const SplitFiles& source) {
  std::vector<Pixel> pixels = read_images<Pixel>(source);
  const std::size_t images = pixels.size() / static_cast<std::size_t>(source.expected.image().elements());
  std::vector<std::int32_t> labels = read_labels(source);
  if (images != labels.size()) {
    fail(ErrorKind::kData, "{} holds {} images but {} holds {} labels; the files do not belong together",
         source.examples.string(), images, source.labels.string(), labels.size());
  }
  return std::make_unique<StoredImages<Pixel>>(source.name, source.expected, source.normalization, std::move(pixels),
                                               std::move(labels));
}

template std::unique_ptr<ByteImages> load_npy<std::uint8_t>(const SplitFiles& source);
template std::unique_ptr<FloatImages> load_npy<float>(const SplitFiles& source);

}  // namespace arbalest::dataflow
