#include "bench/support/bare_jpeg.h"

#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <algorithm>

namespace arbalest::bench {

void decode_bare(std::span<const std::uint8_t> file, unsigned eighths, std::vector<std::uint8_t>& pixels) {
  jpeg_decompress_struct library{};
  jpeg_error_mgr errors{};
  library.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&library);
  jpeg_mem_src(&library, file.data(), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&library, TRUE);
  library.out_color_space = JCS_RGB;
  library.scale_num = eighths;
  library.scale_denom = 8;
  jpeg_start_decompress(&library);
  const std::size_t row_bytes = std::size_t{library.output_width} * 3;
  pixels.resize(std::max(pixels.size(), row_bytes * library.output_height));
  while (library.output_scanline < library.output_height) {
    JSAMPROW row = pixels.data() + library.output_scanline * row_bytes;
    jpeg_read_scanlines(&library, &row, 1);
  }
  jpeg_finish_decompress(&library);
  jpeg_destroy_decompress(&library);
}

}  // namespace arbalest::bench
