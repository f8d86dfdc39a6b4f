#include "dataflow/input/npy.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/ranges.h>

#include "dataflow/input/input_file.h"
#include "dataflow/input/npy_array.h"
#include "engine/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

NpyArray read_images(const NpySource& source) {
  InputFile file(source.images, true);
  const NpyHeader header = read_npy_header(file);
  if (header.type != "|u1") {
    fail(ErrorKind::kData, "{}: is of type '{}'; images are unsigned bytes ('|u1', numpy.uint8)", file.path().string(),
         header.type);
  }
  std::vector<std::uint64_t> expected(source.expected.image.begin(), source.expected.image.end());
  std::vector<std::uint64_t> shape = header.shape;
  if (shape.size() == 3 && expected[0] == 1) shape.insert(shape.begin() + 1, 1);  // images of one channel
  if (shape.size() != 4 || !std::equal(expected.begin(), expected.end(), shape.begin() + 1)) {
    fail(ErrorKind::kData, "{}: has the shape ({}), but the job's images need (n, {})", file.path().string(),
         fmt::join(header.shape, ", "), fmt::join(expected, ", "));
  }
  return {header, read_npy_content(file, header, 1)};
}

std::vector<std::uint8_t> read_labels(const NpySource& source) {
  InputFile file(source.labels, true);
  NpyArray array{read_npy_header(file), {}};
  const std::size_t bytes = integer_bytes(array.header.type);
  if (bytes == 0) {
    fail(ErrorKind::kData, "{}: is of type '{}'; labels are integers, little endian (such as '<i8', numpy.int64)",
         file.path().string(), array.header.type);
  }
  if (array.header.shape.size() != 1) {
    fail(ErrorKind::kData, "{}: has the shape ({}), but labels have one dimension", file.path().string(),
         fmt::join(array.header.shape, ", "));
  }
  array.bytes = read_npy_content(file, array.header, bytes);
  std::vector<std::uint8_t> labels(array.header.shape[0]);
  for (std::size_t record = 0; record < labels.size(); ++record) {
    const std::int64_t label = integer_at(array, bytes, record);
    if (label < 0 || label >= source.expected.classes) {
      fail(ErrorKind::kData,
           "{}: record {}: label {} is not in [0, {}); labels begin with 0, and the job's 'classes' says how many "
           "there are",
           file.path().string(), record, label, source.expected.classes);
    }
    labels[record] = static_cast<std::uint8_t>(label);
  }
  return labels;
}

}  // namespace

std::unique_ptr<ByteImages> load_npy(const NpySource& source) {
  ARBALEST_CHECK(source.expected.classes <= 256);
  NpyArray images = read_images(source);
  std::vector<std::uint8_t> labels = read_labels(source);
  if (images.header.shape[0] != labels.size()) {
    fail(ErrorKind::kData, "{} holds {} images but {} holds {} labels; the files do not belong together",
         source.images.string(), images.header.shape[0], source.labels.string(), labels.size());
  }
  return std::make_unique<ByteImages>(source.name, source.expected, source.normalization, std::move(images.bytes),
                                      std::move(labels));
}

}  // namespace arbalest::dataflow
