// The EXIF orientation of images, in all three kinds of files.
#include "dataflow/input/images/exif.h"
#include "dataflow/input/images/image_decoder.h"
#include "dataflow/input/images/orient.h"
#include "dataflow/input/images/resample.h"
#include "tests/support/catch.h"
#include "tests/support/image_parts.h"

namespace {

using namespace arbalest;
using dataflow::CropBox;
using dataflow::decode_image;
using dataflow::decode_whole_image;
using dataflow::DecodedImage;
using dataflow::ImageSides;
using dataflow::parse_exif;
using dataflow::PixelRules;
using dataflow::read_orientation;
using tests::bytes_of;
using tests::exif;
using tests::RawImage;
using Bytes = std::vector<std::uint8_t>;

// Three by two pixels with the levels of Bytes{10, 20, 30, 40, 50, 60}.
RawImage six_pixels() {
  RawImage image{3, 2, 3, {}};
  for (std::uint8_t level = 10; level <= 60; level = static_cast<std::uint8_t>(level + 10)) {
    image.samples.insert(image.samples.end(), 3, level);
  }
  return image;
}

struct Upright {
  int width;
  Bytes levels;
};

// ImageOps.exif_transpose of Pillow 13.0.0 for the six pixels, by the value of the orientation.
const std::vector<Upright>& upright_images() {
  static const std::vector<Upright> kImages = {{3, {10, 20, 30, 40, 50, 60}}, {3, {30, 20, 10, 60, 50, 40}},
                                               {3, {60, 50, 40, 30, 20, 10}}, {3, {40, 50, 60, 10, 20, 30}},
                                               {2, {10, 40, 20, 50, 30, 60}}, {2, {40, 10, 50, 20, 60, 30}},
                                               {2, {60, 30, 50, 20, 40, 10}}, {2, {30, 60, 20, 50, 10, 40}}};
  return kImages;
}

// An image of 8 x 8 blocks, so that a JPEG file keeps their levels.
RawImage blocks() {
  RawImage image{24, 16, 3, {}};
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      image.samples.insert(image.samples.end(), 3, static_cast<std::uint8_t>(10 * (1 + x / 8 + 3 * (y / 8))));
    }
  }
  return image;
}

}  // namespace

TEST_CASE("orientation: PNG and WebP images are turned upright by all eight values", "[input]") {
  const bool is_big = GENERATE(false, true);
  for (std::uint32_t value = 1; value <= 8; ++value) {
    CAPTURE(value, is_big);
    const Upright& upright = upright_images()[value - 1];
    for (const std::string& file :
         {tests::png_with(tests::png(six_pixels()), "eXIf", exif(value, is_big)),
          tests::webp_with_exif(six_pixels(), exif(value, is_big)),
          tests::webp_with_exif(six_pixels(), std::string("Exif\0\0", 6) + exif(value, is_big))}) {
      CHECK(read_orientation(bytes_of(file)).value == static_cast<int>(value));
      const DecodedImage image = decode_whole_image(bytes_of(file), 1, {});
      CHECK((image.width == upright.width && image.height == 6 / upright.width));
      CHECK(image.pixels == upright.levels);
      CHECK(image.damaged_orientation.empty());
      const ImageSides sides = dataflow::image_sides(bytes_of(file), {});
      CHECK((sides.width == image.width && sides.height == image.height));
      const PixelRules as_stored{.is_oriented = false};
      CHECK(decode_whole_image(bytes_of(file), 1, as_stored).pixels == upright_images()[0].levels);
      CHECK(dataflow::image_sides(bytes_of(file), as_stored).width == 3);
    }
  }
}

TEST_CASE("orientation: JPEG images are turned upright by all eight values", "[input]") {
  const std::string file = tests::jpeg(blocks());
  for (std::uint32_t value = 1; value <= 8; ++value) {
    CAPTURE(value);
    const Upright& upright = upright_images()[value - 1];
    const std::string turned = tests::jpeg_with_exif(file, exif(value, value % 2 == 0));
    const DecodedImage image = decode_whole_image(bytes_of(turned), 1, {});
    REQUIRE((image.width == 8 * upright.width && image.height == 8 * (6 / upright.width)));
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        const int found = image.pixels[static_cast<std::size_t>(y * image.width + x)];
        CHECK(std::abs(found - upright.levels[static_cast<std::size_t>(y / 8 * upright.width + x / 8)]) <= 2);
      }
    }
  }
}

TEST_CASE("orientation: a part of a turned image is the part of the upright one", "[input]") {
  const RawImage image = tests::gradient(90, 60);
  const CropBox box{11.0, 7.0, 30.0, 40.0};
  const ImageSides target{15, 20};
  for (std::uint32_t value = 1; value <= 8; ++value) {
    CAPTURE(value);
    const std::string file = tests::jpeg_with_exif(tests::jpeg(image), exif(value, true));
    const DecodedImage whole = decode_whole_image(bytes_of(file), 3, {});
    const DecodedImage part = decode_image(bytes_of(file), 3, {}, [&](ImageSides) {
      return dataflow::WantedPart{box, target};
    });
    Bytes of_whole(3 * 15 * 20);
    Bytes of_part(of_whole.size());
    resample(whole, box, target.height, target.width, of_whole.data());
    resample(part, box, target.height, target.width, of_part.data());
    CHECK(of_part == of_whole);
  }
}

TEST_CASE("orientation: damaged EXIF data is ignored, and named", "[input]") {
  const auto problem = [](const std::string& data) {
    const dataflow::ExifOrientation found = parse_exif(bytes_of(data));
    CHECK(found.value == 1);
    return found.problem;
  };
  const std::string sound = exif(6, true);
  CHECK(parse_exif(bytes_of(sound)).value == 6);
  CHECK(problem(exif(9, true)) == "it is 9, which is not in [1, 8]");
  CHECK(problem(exif(0, false)) == "it is 0, which is not in [1, 8]");
  CHECK(problem(exif(6, true, 2)) == "it must be one integer");
  CHECK(problem(exif(6, true, 3, 2)) == "it must be one integer");
  CHECK(parse_exif(bytes_of(exif(6, true, 4))).value == 6);
  CHECK(problem("") == "the EXIF data has no valid header");
  CHECK(problem("MM" + sound.substr(2, 1) + "+" + sound.substr(4)) == "the EXIF data has no valid header");
  CHECK(problem("MM" + tests::number(42, 2) + tests::number(0xFFFFFFFF, 4)) == "the EXIF data ends early");
  // No prefix is read beyond its end: the tag's entry ends at byte 34.
  for (std::size_t bytes = 0; bytes < 34; ++bytes) CHECK_FALSE(problem(sound.substr(0, bytes)).empty());
  CHECK(parse_exif(bytes_of(sound.substr(0, 34))).value == 6);
  // Data without the tag is not damaged.
  const std::string other = sound.substr(0, 8) + tests::number(1, 2) + sound.substr(10, 12);
  CHECK(problem(other).empty());
}

TEST_CASE("orientation: damaged data does not prevent an image from being read", "[input]") {
  const RawImage image = six_pixels();
  std::string checksum = tests::png_with(tests::png(image), "eXIf", exif(6, true));
  checksum[33 + 8 + 34] ^= 1;  // in the data of the chunk
  const std::vector<std::pair<std::string, std::string>> files = {
      {checksum, "its checksum is wrong"},
      {tests::png_with(tests::png(image), "eXIf", exif(77, true)), "it is 77"},
      {tests::jpeg_with_exif(tests::jpeg(image), "no TIFF"), "the EXIF data has no valid header"},
      {tests::webp_with_exif(image, "MM"), "the EXIF data has no valid header"}};
  for (const auto& [file, problem] : files) {
    const DecodedImage found = decode_whole_image(bytes_of(file), 3, {});
    CHECK((found.width == 3 && found.height == 2));
    CHECK_THAT(found.damaged_orientation, ContainsSubstring(problem));
    CHECK(decode_whole_image(bytes_of(file), 3, {.is_oriented = false}).damaged_orientation.empty());
  }
}
