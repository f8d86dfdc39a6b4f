// Decodes JPEG with libjpeg-turbo.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "dataflow/input/images/image_formats.h"
#include "dataflow/input/images/luma.h"
#include "dataflow/input/images/resample.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

// Limit of passes over the image: a progressive file of a few bytes may ask for any number of them.
constexpr int kMostScans = 100;  // programs write about ten; 500 of a large image take seconds

// Tells warnings about the coded pixels from those about headers. These are all warnings of jerror.h.
bool concerns_data(int warning) {
  switch (warning) {
    case JWRN_ADOBE_XFORM:      // the Adobe segment names an unknown transform: libjpeg takes the usual one
    case JWRN_BOGUS_ICC:        // the color profile is damaged: it is not used
    case JWRN_EXTRANEOUS_DATA:  // bytes before a marker belong to nothing
    case JWRN_JFIF_MAJOR:       // the JFIF segment has an unknown revision
    case JWRN_NOT_SEQUENTIAL:   // the scan's header names other coefficients than all, and libjpeg decodes all
      return false;
    case JWRN_ARITH_BAD_CODE:
    case JWRN_BOGUS_PROGRESSION:  // scans are missing, or in an order that leaves coefficients wrong
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
    case JWRN_TOO_MUCH_DATA:  // only if this file reads too many rows
      return true;
    default: return true;  // of a newer library
  }
}

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
  // decoding fails. Warnings about headers change no pixel.
  static void check_warning(j_common_ptr common, int level) {
    if (level == -1 && concerns_data(common->err->msg_code)) fail_with_message(common);
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

  void start(J_COLOR_SPACE colors) {
    if (setjmp(failed) != 0) refuse();
    library.out_color_space = colors;
    jpeg_start_decompress(&library);
  }

  // Leaves out columns. The range grows to whole blocks.
  void crop(PixelRange& columns) {
    if (setjmp(failed) != 0) refuse();
    auto first = static_cast<JDIMENSION>(columns.first);
    auto count = static_cast<JDIMENSION>(columns.count);
    jpeg_crop_scanline(&library, &first, &count);
    columns = {static_cast<int>(first), static_cast<int>(count)};
  }

  // Reads `count` rows from `first` on into `pixels`, which has room for one row more, and looks at the data of all
  // others, which may be damaged.
  void read_rows(JDIMENSION first, JDIMENSION count, std::uint8_t* pixels, std::size_t row_bytes) {
    if (setjmp(failed) != 0) refuse();
    const JDIMENSION end = first + count;
    if (first > 0) jpeg_skip_scanlines(&library, first);
    while (library.output_scanline < end) {
      constexpr JDIMENSION kRows = 8;  // the library writes at most as many at once
      JSAMPROW rows[kRows];
      const JDIMENSION left = std::min(kRows, end - library.output_scanline);
      for (JDIMENSION i = 0; i < left; ++i) rows[i] = pixels + (library.output_scanline - first + i) * row_bytes;
      jpeg_read_scanlines(&library, rows, left);
    }
    // To skip the last row would also skip the data of all rows before it.
    if (end + 1 < library.output_height) jpeg_skip_scanlines(&library, library.output_height - end - 1);
    if (end < library.output_height) {
      JSAMPROW unused = pixels + count * row_bytes;
      jpeg_read_scanlines(&library, &unused, 1);
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

constexpr unsigned kEighths = 8;

// The smallest size at which the part is not smaller than what becomes of it.
unsigned reduced_eighths(const WantedPart& part) {
  const double least =
      std::min(1.0, std::max(part.target.width / part.box.width, part.target.height / part.box.height));
  return static_cast<unsigned>(std::clamp(std::ceil(least * kEighths - 1e-9), 1.0, static_cast<double>(kEighths)));
}

// The pixels that resampling reads, and some on both sides: libjpeg computes the colors at the border of what it
// decodes without their neighbors.
PixelRange read_range(int inputs, double start, double length, int outputs) {
  constexpr int kBeyond = 8;  // two samples of a color that has a quarter of the width
  const PixelRange range = resampled_range(inputs, start, length, outputs);
  const int first = std::max(0, range.first - kBeyond);
  const int end = std::min(inputs, range.first + range.count + kBeyond);
  return {first, end - first};
}

// Turns CMYK into RGB as Pillow does: the values are those of Adobe's programs, which store 255 for no ink; the colors
// follow without a profile.
void convert_cmyk(DecodedImage& image) {
  constexpr int kInks = 4;
  constexpr int kColors = 3;
  // a * b / 255, rounded.
  const auto times = [](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t product = a * b + 128;
    return ((product >> 8U) + product) >> 8U;
  };
  const std::uint8_t* from = image.pixels.data();
  std::uint8_t* to = image.pixels.data();
  for (const std::uint8_t* end = from + image.pixels.size(); from != end; from += kInks) {
    const std::uint32_t light = from[3];
    for (int c = 0; c < kColors; ++c) *to++ = static_cast<std::uint8_t>(light - times(255U - from[c], light));
  }
  image.channels = kColors;
  image.pixels.resize(image.pixels.size() / kInks * kColors);
}

// Turns RGBX into gray: the compiler vectorizes the loop over pixels of four bytes.
void convert_to_gray(DecodedImage& image) {
  std::vector<std::uint32_t> colors(image.pixels.size() / sizeof(std::uint32_t));
  std::memcpy(colors.data(), image.pixels.data(), sizeof(std::uint32_t) * colors.size());
  image.channels = 1;
  image.pixels.resize(colors.size());
  const std::uint32_t* from = colors.data();
  std::uint8_t* to = image.pixels.data();
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const std::uint32_t color = from[i];
    to[i] = luma(color & 0xFFU, (color >> 8U) & 0xFFU, (color >> 16U) & 0xFFU);
  }
}

}  // namespace

ImageSides jpeg_sides(std::span<const std::uint8_t> file) {
  Decoder decoder(file);
  return read_sides(decoder);
}

DecodedImage decode_jpeg(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                         const ChoosePart& choose) {
  Decoder decoder(file);
  jpeg_decompress_struct& library = decoder.library;
  const WantedPart part = choose(read_sides(decoder));
  const unsigned eighths = rules.is_reduced ? reduced_eighths(part) : kEighths;
  library.scale_num = eighths;
  library.scale_denom = kEighths;
  const bool is_cmyk = library.jpeg_color_space == JCS_CMYK || library.jpeg_color_space == JCS_YCCK;
  // The Y of a file is not always the gray of its colors, which are clamped to 0 ... 255.
  const bool is_gray = channels == 1 && (rules.is_reduced || library.jpeg_color_space == JCS_GRAYSCALE);
  const bool becomes_gray = channels == 1 && !is_gray && !is_cmyk;
  decoder.start(is_cmyk ? JCS_CMYK : is_gray ? JCS_GRAYSCALE : becomes_gray ? JCS_EXT_RGBX : JCS_RGB);
  DecodedImage image;
  image.scale = static_cast<double>(eighths) / kEighths;
  image.whole = {static_cast<int>(library.output_width), static_cast<int>(library.output_height)};
  PixelRange columns{0, image.whole.width};
  PixelRange rows{0, image.whole.height};
  if (!rules.is_reduced) {
    columns = read_range(image.whole.width, part.box.left, part.box.width, part.target.width);
    rows = read_range(image.whole.height, part.box.top, part.box.height, part.target.height);
    if (columns.count < image.whole.width) decoder.crop(columns);
  }
  image.left = columns.first;
  image.top = rows.first;
  image.width = columns.count;
  image.height = rows.count;
  image.channels = library.output_components;
  const std::size_t row_bytes = static_cast<std::size_t>(columns.count) * static_cast<std::size_t>(image.channels);
  image.pixels.resize(row_bytes * static_cast<std::size_t>(rows.count + 1));
  decoder.read_rows(static_cast<JDIMENSION>(rows.first), static_cast<JDIMENSION>(rows.count), image.pixels.data(),
                    row_bytes);
  image.pixels.resize(row_bytes * static_cast<std::size_t>(rows.count));
  if (is_cmyk) convert_cmyk(image);
  if (becomes_gray) convert_to_gray(image);
  return image;
}

}  // namespace arbalest::dataflow
