// Writes small IDX files, valid or with an error that the test chooses.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

inline std::string idx_header(const std::vector<std::uint32_t>& extents, char type = 0x08) {
  std::string bytes{'\0', '\0', type, static_cast<char>(extents.size())};
  for (const std::uint32_t extent : extents) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>(extent >> shift & 0xFFU);
  }
  return bytes;
}

// Image n has the bytes n, n + 1, n + 2, ... modulo 256.
inline std::string idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string bytes = idx_header({count, height, width});
  for (std::uint32_t image = 0; image < count; ++image) {
    for (std::uint32_t i = 0; i < height * width; ++i) bytes += static_cast<char>((image + i) & 0xFFU);
  }
  return bytes;
}

// Label n is n modulo `classes`.
inline std::string idx_labels(std::uint32_t count, std::uint32_t classes = 10) {
  std::string bytes = idx_header({count});
  for (std::uint32_t i = 0; i < count; ++i) bytes += static_cast<char>(i % classes);
  return bytes;
}

inline std::string gzip(const std::string& content) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(content.size())), '\0');
  std::string in = content;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("deflate failed");
  return out;
}

// Writes the uncompressed training files of a dataset: `count` images of 4 x 3 pixels and their labels.
inline void write_idx_dataset(const std::filesystem::path& directory, std::uint32_t count) {
  tests::write_text(directory / "train-images-idx3-ubyte", idx_images(count, 4, 3));
  tests::write_text(directory / "train-labels-idx1-ubyte", idx_labels(count));
}

}  // namespace arbalest::tests
