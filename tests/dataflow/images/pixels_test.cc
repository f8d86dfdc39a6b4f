// The pixels that become of an image do not depend on the kind of its file. Expected values are those of Pillow 13.0.0.
#include "dataflow/input/images/image_decoder.h"
#include "dataflow/input/images/luma.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/data_failure.h"
#include "tests/support/image_parts.h"

namespace {

using namespace arbalest;
using dataflow::decode_whole_image;
using dataflow::DecodedImage;
using dataflow::PixelRules;
using tests::bytes_of;
using tests::plain;
using tests::png_with;
using Bytes = std::vector<std::uint8_t>;

struct Color {
  Bytes rgb;
  int luma;  // Image.new("RGB", (1, 1), rgb).convert("L").getpixel((0, 0))
};

const std::vector<Color>& colors() {
  static const std::vector<Color> kColors = {{{255, 0, 0}, 76},      {{0, 255, 0}, 150},    {{0, 0, 255}, 29},
                                             {{250, 100, 10}, 135},  {{9, 80, 200}, 72},    {{128, 127, 126}, 127},
                                             {{1, 2, 3}, 2},         {{200, 150, 50}, 154}, {{17, 203, 99}, 136},
                                             {{255, 255, 254}, 255}, {{0, 0, 1}, 0},        {{60, 61, 62}, 61}};
  return kColors;
}

int gray_of(const std::string& file, const PixelRules& rules = {}) {
  const DecodedImage image = decode_whole_image(bytes_of(file), 1, rules);
  REQUIRE(image.channels == 1);
  return image.pixels.at(image.pixels.size() / 2);
}

Bytes rgb_of(const std::string& file) {
  const DecodedImage image = decode_whole_image(bytes_of(file), 3, {});
  REQUIRE(image.channels == 3);
  return {image.pixels.begin(), image.pixels.begin() + 3};
}

// A file of one pixel that uses a palette of two colors, the second of them transparent.
std::string palette_png(const Bytes& rgb) {
  const std::string colors = std::string(3, '\x40') + std::string(rgb.begin(), rgb.end());
  const std::string row("\0\x80", 2);  // no filter; the bit of the second color
  std::string packed(64, '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, bytes_of(row).data(), row.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1A\n" +
         tests::png_chunk("IHDR", tests::number(1, 4) + tests::number(1, 4) + std::string("\x01\x03\0\0\0", 5)) +
         tests::png_chunk("PLTE", colors) + tests::png_chunk("tRNS", std::string("\xFF\0", 2)) +
         tests::png_chunk("IDAT", packed) + tests::png_chunk("IEND", "");
}

Bytes with_alpha(Bytes rgb) {
  rgb.push_back(30);
  return rgb;
}

}  // namespace

TEST_CASE("pixels: gray is the luma of the stored values in every kind of file", "[input]") {
  for (const auto& [rgb, luma] : colors()) {
    CAPTURE(rgb);
    CHECK(dataflow::luma(rgb[0], rgb[1], rgb[2]) == luma);
    const auto image = plain(16, 16, rgb);
    CHECK(gray_of(tests::png(image)) == luma);
    CHECK(gray_of(tests::png(image, 16)) == luma);
    CHECK(gray_of(tests::png(plain(16, 16, with_alpha(rgb)))) == luma);
    CHECK(gray_of(tests::png(plain(16, 16, with_alpha(rgb)), 16)) == luma);
    CHECK(gray_of(palette_png(rgb)) == luma);
    CHECK(gray_of(tests::webp(image)) == luma);
    CHECK(gray_of(tests::webp(plain(16, 16, with_alpha(rgb)))) == luma);
    CHECK(std::abs(gray_of(tests::jpeg(image)) - luma) <= 1);
    CHECK(std::abs(gray_of(tests::jpeg(image, true)) - luma) <= 1);
    CHECK(rgb_of(tests::png(image)) == rgb);
    CHECK(rgb_of(palette_png(rgb)) == rgb);
    CHECK(rgb_of(tests::webp(image)) == rgb);
    CHECK(rgb_of(tests::webp(plain(16, 16, with_alpha(rgb)))) == rgb);
  }
}

TEST_CASE("pixels: gray of a JPEG file is that of its colors where these are clamped", "[input]") {
  // Colors beside each other that JPEG cannot keep: what it stores lies outside of 0 ... 255.
  auto image = plain(64, 64, {0, 0, 0});
  std::uint32_t state = 1;
  for (auto& sample : image.samples) {
    state = state * 1664525U + 1013904223U;
    sample = (state >> 31U) != 0 ? 255 : 0;
  }
  const std::string file = tests::jpeg(image);
  const DecodedImage colors = decode_whole_image(bytes_of(file), 3, {});
  const DecodedImage gray = decode_whole_image(bytes_of(file), 1, {});
  REQUIRE(colors.pixels.size() == 3 * gray.pixels.size());
  for (std::size_t i = 0; i < gray.pixels.size(); ++i) {
    const std::uint8_t* rgb = colors.pixels.data() + 3 * i;
    CHECK(gray.pixels[i] == dataflow::luma(rgb[0], rgb[1], rgb[2]));
  }
  PixelRules stored;  // the Y of the file
  stored.is_reduced = true;
  CHECK(decode_whole_image(bytes_of(file), 1, stored).pixels != gray.pixels);
}

TEST_CASE("pixels: chunks about colors change nothing", "[input]") {
  const std::string chromaticities = [] {
    std::string data;
    for (const std::uint32_t value : {31270U, 32900U, 68000U, 32000U, 26500U, 69000U, 15000U, 6000U}) {
      data += tests::number(value, 4);
    }
    return data;
  }();
  for (const auto& [rgb, luma] : colors()) {
    CAPTURE(rgb);
    for (const int bits : {8, 16}) {
      const std::string file = tests::png(plain(2, 2, rgb), bits);
      for (const std::string& described :
           {png_with(file, "gAMA", tests::number(100000, 4)), png_with(file, "gAMA", tests::number(45455, 4)),
            png_with(file, "sRGB", std::string(1, '\0')), png_with(file, "cHRM", chromaticities),
            png_with(png_with(file, "gAMA", tests::number(100000, 4)), "cHRM", chromaticities),
            png_with(file, "iCCP", std::string("p\0\0not a profile", 16))}) {
        CHECK(gray_of(described) == luma);
        CHECK(rgb_of(described) == rgb);
      }
    }
    const std::string palette = palette_png(rgb);
    CHECK(gray_of(png_with(palette, "gAMA", tests::number(100000, 4))) == luma);
  }
}

TEST_CASE("pixels: 16-bit samples keep their higher byte", "[input]") {
  const auto image = plain(1, 1, {9});
  std::string file = tests::png(image, 16);  // 0x097F; rounding 0x0980 and more would give 10
  CHECK(gray_of(file) == 9);
  CHECK(rgb_of(file) == Bytes{9, 9, 9});
}

TEST_CASE("pixels: older rules give what older versions gave", "[input]") {
  // Version 5a143d63 gave these: libpng's weights, and its gamma if the file has one.
  const auto old = [](const Bytes& rgb, bool has_srgb) {
    const std::string file = tests::png(plain(2, 2, rgb));
    return gray_of(has_srgb ? png_with(file, "sRGB", std::string(1, '\0')) : file, dataflow::kUnrecordedRules);
  };
  CHECK((old({255, 0, 0}, false) == 54 && old({0, 255, 0}, false) == 182 && old({0, 0, 255}, false) == 18));
  CHECK((old({255, 0, 0}, true) == 126 && old({0, 255, 0}, true) == 219 && old({0, 0, 255}, true) == 76));
}

TEST_CASE("pixels: CMYK becomes RGB as in Pillow", "[input]") {
  struct Ink {
    Bytes stored;  // what the file holds; Pillow has 255 minus that
    Bytes rgb;     // Image.new("CMYK", (1, 1), ...).convert("RGB").getpixel((0, 0))
  };
  const std::vector<Ink> inks = {{{1, 2, 3, 4}, {0, 0, 0}},         {{255, 255, 255, 255}, {255, 255, 255}},
                                 {{0, 0, 0, 255}, {0, 0, 0}},       {{200, 100, 50, 180}, {141, 71, 35}},
                                 {{10, 250, 130, 90}, {4, 88, 46}}, {{128, 128, 128, 128}, {64, 64, 64}},
                                 {{255, 0, 0, 255}, {255, 0, 0}},   {{30, 60, 90, 20}, {2, 5, 7}}};
  for (const auto& [stored, rgb] : inks) {
    for (const bool is_ycck : {false, true}) {
      CAPTURE(stored, is_ycck);
      const Bytes found = rgb_of(tests::jpeg_of(plain(16, 16, stored), {.inks_are_ycck = is_ycck}));
      for (std::size_t c = 0; c < 3; ++c) CHECK(std::abs(found[c] - rgb[c]) <= 2);
      const int gray = gray_of(tests::jpeg_of(plain(16, 16, stored), {.inks_are_ycck = is_ycck}));
      CHECK(std::abs(gray - dataflow::luma(rgb[0], rgb[1], rgb[2])) <= 2);
    }
  }
}

TEST_CASE("pixels: WebP files with loss, of any end and animated", "[input]") {
  const auto image = plain(20, 12, {200, 100, 30});
  const std::string file = tests::webp(image, 90.0F);
  const Bytes found = rgb_of(file);
  for (std::size_t c = 0; c < 3; ++c) CHECK(std::abs(found[c] - image.samples[c]) <= 4);
  CHECK(decode_whole_image(bytes_of(file + "more"), 3, {}).pixels == decode_whole_image(bytes_of(file), 3, {}).pixels);
  for (const std::string& whole : {file, tests::webp(tests::gradient(9, 9)), tests::webp_with_exif(image, "")}) {
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      CAPTURE(bytes, whole.size());
      CHECK_FALSE(tests::data_failure([&] { rgb_of(whole.substr(0, bytes)); }).empty());
    }
  }
  const std::string frame = std::string(24, '\0') + webp(image).substr(12);
  const std::string animated =
      tests::webp_of(image, 2, tests::webp_chunk("ANIM", std::string(6, '\0')) + tests::webp_chunk("ANMF", frame));
  CHECK_THAT(tests::data_failure([&] { rgb_of(animated); }), ContainsSubstring("is an animated WebP image"));
  // A lossless file may say that it has 16,384 x 16,384 pixels.
  std::string large = tests::webp(image);
  for (std::size_t at : {21U, 22U, 23U}) large[at] = '\xFF';
  large[24] = static_cast<char>(large[24] | '\x0F');
  CHECK_THAT(tests::data_failure([&] { rgb_of(large); }), ContainsSubstring("more than 33554432 are refused"));
}
