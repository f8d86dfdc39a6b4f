// Decodes PNG with libpng.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "dataflow/input/images/image_formats.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::fail;

namespace {

// libpng reports errors by longjmp, so no object with a destructor may live between setjmp and the call that fails.
class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> file)
      : left_(file), library_(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning)) {
    if (library_ != nullptr) info_ = png_create_info_struct(library_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&library_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(library_, this, read);
  }
  ~Decoder() { png_destroy_read_struct(&library_, &info_, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  ImageSides read_sides() {
    read_header();
    const png_uint_32 width = png_get_image_width(library_, info_);
    const png_uint_32 height = png_get_image_height(library_, info_);
    check_sides(width, height);
    return {static_cast<int>(width), static_cast<int>(height)};
  }

  // Returns the number of channels.
  int read_pixels(PixelRules::Luma rule, int channels, std::vector<std::uint8_t>& pixels,
                  std::vector<png_bytep>& rows) {
    const std::size_t row_bytes = start(rule, channels);
    pixels.resize(row_bytes * rows.size());
    for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = pixels.data() + y * row_bytes;
    finish(rows.data());
    return png_get_channels(library_, info_);
  }

 private:
  [[noreturn]] static void on_error(png_structp library, png_const_charp message) {
    auto& self = *static_cast<Decoder*>(png_get_error_ptr(library));
    std::strncpy(self.message_, message, sizeof(self.message_) - 1);
    std::longjmp(self.failed_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}  // warnings concern colors and text, which do not matter here

  static void read(png_structp library, png_bytep out, std::size_t bytes) {
    auto& self = *static_cast<Decoder*>(png_get_io_ptr(library));
    if (bytes > self.left_.size()) png_error(library, "it is truncated");
    std::copy_n(self.left_.begin(), bytes, out);
    self.left_ = self.left_.subspan(bytes);
  }

  [[noreturn]] void refuse() const { fail(ErrorKind::kData, "is no valid PNG image: {}; get it again", message_); }

  void read_header() {
    if (setjmp(failed_) != 0) refuse();
    png_set_user_limits(library_, 0x7FFFFFFF, 0x7FFFFFFF);  // check_sides() sets the limit
    png_read_info(library_, info_);
  }

  // Asks for gray or RGB of 8 bits, and returns the bytes of a row.
  std::size_t start(PixelRules::Luma rule, int channels) {
    if (setjmp(failed_) != 0) refuse();
    png_set_expand(library_);
    if (rule == PixelRules::Luma::kBt601) {
      png_set_strip_16(library_);
    } else {
      const bool has_colors = (png_get_color_type(library_, info_) & PNG_COLOR_MASK_COLOR) != 0;
      png_set_scale_16(library_);
      if (channels == 1 && has_colors) png_set_rgb_to_gray(library_, PNG_ERROR_ACTION_NONE, -1.0, -1.0);
    }
    png_set_strip_alpha(library_);
    png_set_interlace_handling(library_);
    png_read_update_info(library_, info_);
    return png_get_rowbytes(library_, info_);
  }

  void finish(png_bytepp rows) {
    if (setjmp(failed_) != 0) refuse();
    png_read_image(library_, rows);
    png_read_end(library_, nullptr);
  }

  std::span<const std::uint8_t> left_;
  std::jmp_buf failed_;
  char message_[200] = {};
  png_structp library_;
  png_infop info_ = nullptr;
};

}  // namespace

ImageSides png_sides(std::span<const std::uint8_t> file) { return Decoder(file).read_sides(); }

DecodedImage decode_png(std::span<const std::uint8_t> file, int channels, const PixelRules& rules,
                        const ChoosePart& choose) {
  Decoder decoder(file);
  const ImageSides sides = decoder.read_sides();
  choose(sides);
  DecodedImage image{.width = sides.width, .height = sides.height, .pixels = {}, .whole = sides};
  std::vector<png_bytep> rows(static_cast<std::size_t>(sides.height));
  image.channels = decoder.read_pixels(rules.luma, channels, image.pixels, rows);
  ARBALEST_CHECK(image.pixels.size() ==
                 static_cast<std::size_t>(sides.width) * rows.size() * static_cast<std::size_t>(image.channels));
  return image;
}

}  // namespace arbalest::dataflow
