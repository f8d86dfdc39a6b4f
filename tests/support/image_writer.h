// Makes small JPEG and PNG files in memory.
#pragma once

#include <cstddef>
#include <cstdio>

#include <jpeglib.h>
#include <png.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace arbalest::tests {

struct RawImage {
  int width = 0;
  int height = 0;
  int channels = 3;                   // 1 gray, 3 RGB, 4 CMYK (JPEG) or RGBA (PNG)
  std::vector<std::uint8_t> samples;  // [height, width, channels]
};

// An image whose neighboring pixels all differ; its color depends on `seed`.
inline RawImage gradient(int width, int height, int channels = 3, int seed = 0) {
  RawImage image{width, height, channels, {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.samples.push_back(static_cast<std::uint8_t>((x * 3 + y * 5 + c * 60 + seed * 37) % 256));
      }
    }
  }
  return image;
}

inline RawImage plain(int width, int height, const std::vector<std::uint8_t>& color) {
  RawImage image{width, height, static_cast<int>(color.size()), {}};
  for (int i = 0; i < width * height; ++i) image.samples.insert(image.samples.end(), color.begin(), color.end());
  return image;
}

struct JpegOptions {
  bool progressive = false;
  bool inks_are_ycck = true;  // for 4 channels; else the inks are stored as they are
  int luma_across = 2;        // samples of luma for one of color
  int luma_down = 2;
  int bands = 0;  // if not 0, a scan for each of so many AC coefficients of each color, and one for the others
};

// The scans of JpegOptions::bands: those of DC, and of the AC coefficients.
inline std::vector<jpeg_scan_info> band_scans(int colors, int bands) {
  std::vector<jpeg_scan_info> scans;
  const auto add = [&](int color, int first, int last) {
    jpeg_scan_info scan{};
    scan.comps_in_scan = 1;
    scan.component_index[0] = color;
    scan.Ss = first;
    scan.Se = last;
    scans.push_back(scan);
  };
  for (int color = 0; color < colors; ++color) {
    add(color, 0, 0);
    for (int band = 1; band <= bands; ++band) add(color, band, band);
    if (bands < 63) add(color, bands + 1, 63);
  }
  return scans;
}

inline std::string jpeg_of(const RawImage& image, const JpegOptions& options) {
  jpeg_compress_struct library{};
  jpeg_error_mgr errors{};
  library.err = jpeg_std_error(&errors);  // ends the program on errors
  jpeg_create_compress(&library);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&library, &bytes, &size);
  library.image_width = static_cast<JDIMENSION>(image.width);
  library.image_height = static_cast<JDIMENSION>(image.height);
  library.input_components = image.channels;
  library.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&library);
  jpeg_set_quality(&library, 95, TRUE);
  if (image.channels == 4) jpeg_set_colorspace(&library, options.inks_are_ycck ? JCS_YCCK : JCS_CMYK);
  if (image.channels == 3) {
    library.comp_info[0].h_samp_factor = options.luma_across;
    library.comp_info[0].v_samp_factor = options.luma_down;
  }
  if (options.progressive) jpeg_simple_progression(&library);
  const std::vector<jpeg_scan_info> scans = band_scans(image.channels, options.bands);
  if (options.bands > 0) {
    library.scan_info = scans.data();
    library.num_scans = static_cast<int>(scans.size());
  }
  jpeg_start_compress(&library, TRUE);
  std::vector<std::uint8_t> samples = image.samples;
  while (library.next_scanline < library.image_height) {
    JSAMPROW row = samples.data() + library.next_scanline * static_cast<std::size_t>(image.width * image.channels);
    jpeg_write_scanlines(&library, &row, 1);
  }
  jpeg_finish_compress(&library);
  jpeg_destroy_compress(&library);
  std::string file(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return file;
}

inline std::string jpeg(const RawImage& image, bool progressive = false) {
  return jpeg_of(image, {.progressive = progressive});
}

// `bits`: bits per sample, 8 or 16. With 16, a byte of `image` is the higher byte and the lower one is 0x7F.
inline std::string png(const RawImage& image, int bits = 8) {
  png_structp library = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(library);
  std::string file;
  png_set_write_fn(
      library, &file,
      [](png_structp writer, png_bytep bytes, std::size_t size) {
        static_cast<std::string*>(png_get_io_ptr(writer))->append(reinterpret_cast<char*>(bytes), size);
      },
      nullptr);
  const int color = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                    : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                          : PNG_COLOR_TYPE_RGB_ALPHA;
  png_set_IHDR(library, info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), bits,
               color, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(library, info);
  const auto row_samples = static_cast<std::size_t>(image.width * image.channels);
  for (int y = 0; y < image.height; ++y) {
    std::vector<std::uint8_t> row;
    for (std::size_t i = 0; i < row_samples; ++i) {
      row.push_back(image.samples[static_cast<std::size_t>(y) * row_samples + i]);
      if (bits == 16) row.push_back(0x7F);
    }
    png_write_row(library, row.data());
  }
  png_write_end(library, info);
  png_destroy_write_struct(&library, &info);
  return file;
}

// Returns the file with another height and width in its header.
inline std::string jpeg_of_sides(const std::string& file, unsigned width, unsigned height) {
  std::string changed = file;
  const std::size_t frame = file.find("\xFF\xC0");  // length (2), precision (1), height (2), width (2)
  if (frame == std::string::npos) throw std::runtime_error("no frame header");
  const auto put = [&](std::size_t at, unsigned value) {
    changed[at] = static_cast<char>(value >> 8U);
    changed[at + 1] = static_cast<char>(value);
  };
  put(frame + 5, height);
  put(frame + 7, width);
  return changed;
}

}  // namespace arbalest::tests
