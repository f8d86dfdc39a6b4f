// Decodes JPEG with libjpeg-turbo.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "dataflow/input/images/image_formats.h"
#include "engine/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

// Limit of passes over the image: a progressive file of a few bytes may ask for any number of them.
constexpr int kMostScans = 500;

// libjpeg reports errors by longjmp, so no object with a destructor may live between setjmp and the call that fails.
struct Decoder {
  jpeg_decompress_struct library{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf failed;
  std::array<char, JMSG_LENGTH_MAX> message{};

  explicit Decoder(std::span<const std::uint8_t> file) {
    library.err = jpeg_std_error(&errors);
    library.client_data = this;
    errors.error_exit = [](j_common_ptr common) { fail_with_message(common); };
    errors.emit_message = [](j_common_ptr common, int level) { check_warning(common, level); };
    progress.progress_monitor = [](j_common_ptr common) { check_scans(common); };
    if (setjmp(failed) != 0) {
      jpeg_destroy_decompress(&library);
      refuse();
    }
    jpeg_create_decompress(&library);
    library.progress = &progress;
    jpeg_mem_src(&library, file.data(), static_cast<unsigned long>(file.size()));
  }
  ~Decoder() { jpeg_destroy_decompress(&library); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  [[noreturn]] static void fail_with_message(j_common_ptr common) {
    auto& self = *static_cast<Decoder*>(common->client_data);
    common->err->format_message(common, self.message.data());
    std::longjmp(self.failed, 1);
  }

  // libjpeg fills missing or wrong data with gray pixels and goes on. A network must not learn from such pixels, so
  // decoding fails.
  static void check_warning(j_common_ptr common, int level) {
    if (level != -1) return;
    const int code = common->err->msg_code;
    if (code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM) fail_with_message(common);
  }

  static void check_scans(j_common_ptr common) {
    auto& self = *static_cast<Decoder*>(common->client_data);
    if (self.library.input_scan_number <= kMostScans) return;
    std::snprintf(self.message.data(), self.message.size(), "more than %d scans", kMostScans);
    std::longjmp(self.failed, 1);
  }

  [[noreturn]] void refuse() const {
    fail(ErrorKind::kData, "is no valid JPEG image: {}; get it again", message.data());
  }

  void read_header() {
    if (setjmp(failed) != 0) refuse();
    jpeg_read_header(&library, TRUE);
  }

  void start(int channels) {
    if (setjmp(failed) != 0) refuse();
    library.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&library);
  }

  void read_rows(std::uint8_t* pixels, std::size_t row_bytes) {
    if (setjmp(failed) != 0) refuse();
    while (library.output_scanline < library.output_height) {
      JSAMPROW row = pixels + library.output_scanline * row_bytes;
      jpeg_read_scanlines(&library, &row, 1);
    }
    jpeg_finish_decompress(&library);
  }
};

ImageSides read_sides(Decoder& decoder) {
  decoder.read_header();
  const jpeg_decompress_struct& library = decoder.library;
  check_sides(library.image_width, library.image_height);
  return {static_cast<int>(library.image_width), static_cast<int>(library.image_height)};
}

}  // namespace

ImageSides jpeg_sides(std::span<const std::uint8_t> file) {
  Decoder decoder(file);
  return read_sides(decoder);
}

DecodedImage decode_jpeg(std::span<const std::uint8_t> file, int channels, const ChooseLeastScale& choose) {
  Decoder decoder(file);
  jpeg_decompress_struct& library = decoder.library;
  const double least_scale = choose(read_sides(decoder));
  if (library.jpeg_color_space == JCS_CMYK || library.jpeg_color_space == JCS_YCCK) {
    fail(ErrorKind::kData, "is in CMYK, the colors of print; convert it to RGB");
  }
  constexpr double kEighths = 8.0;
  const double eighths = std::clamp(std::ceil(least_scale * kEighths - 1e-9), 1.0, kEighths);
  library.scale_num = static_cast<unsigned>(eighths);
  library.scale_denom = static_cast<unsigned>(kEighths);
  decoder.start(channels);
  DecodedImage image;
  image.width = static_cast<int>(library.output_width);
  image.height = static_cast<int>(library.output_height);
  image.channels = channels;
  image.scale = eighths / kEighths;
  const std::size_t row_bytes = std::size_t{library.output_width} * static_cast<std::size_t>(channels);
  image.pixels.resize(row_bytes * library.output_height);
  decoder.read_rows(image.pixels.data(), row_bytes);
  return image;
}

}  // namespace arbalest::dataflow
