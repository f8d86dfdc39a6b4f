#include "dataflow/input/formats/npy.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "dataflow/input/formats/input_file.h"
#include "dataflow/input/formats/npy_array.h"
#include "engine/error.h"

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
void check_shape(const NpySource& source, const NpyHeader& header) {
  const std::vector<std::uint64_t> expected(source.expected.image().begin(), source.expected.image().end());
  const std::vector<std::uint64_t>& shape = header.shape;
  if (!shape.empty() && squeezed({shape.begin() + 1, shape.end()}) == squeezed(expected)) return;
  fail(ErrorKind::kData,
       "{}: has the shape ({}), but the job's images need (n, {}), where extents of 1 may be left out; correct "
       "data.npy.channels, height and width, or transpose or reshape the array",
       source.images.string(), fmt::join(shape, ", "), fmt::join(expected, ", "));
}

template <typename Pixel>
std::vector<Pixel> read_images(const NpySource& source) {
  InputFile file(source.images, true);
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
  if constexpr (std::is_same_v<Pixel, float>) {
    return read_floats(file, header, "pixel", static_cast<std::size_t>(source.expected.image().elements()));
  } else {
    return read_npy_content(file, header, 1);
  }
}

std::vector<std::int32_t> read_labels(const NpySource& source) {
  InputFile file(source.labels, true);
  NpyArray array{read_npy_header(file), {}};
  const std::size_t bytes = integer_bytes(array.header.type);
  if (bytes == 0) {
    fail(ErrorKind::kData, "{}: is of type '{}'; labels are integers, little endian (such as '<i8', numpy.int64)",
         file.path().string(), array.header.type);
  }
  if (array.header.shape.size() != 1) {
    fail(ErrorKind::kData,
         "{}: has the shape ({}), but labels have one dimension; use ravel(), or argmax(1) for one-hot vectors",
         file.path().string(), fmt::join(array.header.shape, ", "));
  }
  array.bytes = read_npy_content(file, array.header, bytes);
  std::vector<std::int32_t> labels(array.header.shape[0]);
  for (std::size_t record = 0; record < labels.size(); ++record) {
    const std::int64_t label = integer_at(array, bytes, record);
    if (label < 0 || label >= source.expected.classes()) {
      fail(ErrorKind::kData,
           "{}: record {}: label {} is not in [0, {}); labels begin with 0, and the job's 'classes' says how many "
           "there are",
           file.path().string(), record, label, source.expected.classes());
    }
    labels[record] = static_cast<std::int32_t>(label);
  }
  return labels;
}

}  // namespace

template <typename Pixel>
std::unique_ptr<StoredImages<Pixel>> load_npy(const NpySource& source) {
  std::vector<Pixel> pixels = read_images<Pixel>(source);
  const std::size_t images = pixels.size() / static_cast<std::size_t>(source.expected.image().elements());
  std::vector<std::int32_t> labels = read_labels(source);
  if (images != labels.size()) {
    fail(ErrorKind::kData, "{} holds {} images but {} holds {} labels; the files do not belong together",
         source.images.string(), images, source.labels.string(), labels.size());
  }
  return std::make_unique<StoredImages<Pixel>>(source.name, source.expected, source.normalization, std::move(pixels),
                                               std::move(labels));
}

template std::unique_ptr<ByteImages> load_npy<std::uint8_t>(const NpySource& source);
template std::unique_ptr<FloatImages> load_npy<float>(const NpySource& source);

}  // namespace arbalest::dataflow
