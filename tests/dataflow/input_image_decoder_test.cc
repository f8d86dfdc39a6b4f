#include "dataflow/input/images/image_decoder.h"

#include <zlib.h>

#include <cmath>
#include <string>

#include "dataflow/input/images/framing.h"
#include "dataflow/input/images/resample.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"

namespace {

using namespace arbalest;
using dataflow::CropBox;
using dataflow::decode_image;
using dataflow::DecodedImage;
using dataflow::frame;
using dataflow::Framing;
using dataflow::ImageSides;
using tests::gradient;
using tests::jpeg;
using tests::plain;
using tests::png;
using Bytes = std::vector<std::uint8_t>;

std::span<const std::uint8_t> bytes_of(const std::string& file) {
  return {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()};
}

DecodedImage decode(const std::string& file, int channels = 3) {
  return dataflow::decode_whole_image(bytes_of(file), channels, {});
}

// Decodes for a model that reads the whole image at `scale`.
DecodedImage decode_reduced(const std::string& file, double scale) {
  const auto choose = [&](ImageSides sides) {
    return dataflow::WantedPart{{0.0, 0.0, sides.width / scale, sides.height / scale}, sides};
  };
  return decode_image(bytes_of(file), 3, {.is_reduced = true}, choose);
}

std::string failure(const std::string& file) {
  try {
    decode(file);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    return error.what();
  }
  FAIL("the image was accepted");
  return "";
}

// The largest difference between two samples.
int difference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  int most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// A PNG with another width and height in its header, and a correct checksum.
std::string png_of_sides(std::string file, std::uint32_t width, std::uint32_t height) {
  constexpr std::size_t kHeader = 12;  // "IHDR", after the signature and the length
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) file[at + i] = static_cast<char>(value >> (24U - 8U * i));
  };
  put(kHeader + 4, width);
  put(kHeader + 8, height);
  put(kHeader + 17, static_cast<std::uint32_t>(crc32(0, bytes_of(file).subspan(kHeader).data(), 17)));
  return file;
}

}  // namespace

TEST_CASE("images: a PNG is decoded exactly", "[input]") {
  const auto image = gradient(7, 5);
  const DecodedImage found = decode(png(image));
  CHECK((found.width == 7 && found.height == 5 && found.channels == 3 && found.scale == 1.0));
  CHECK(found.pixels == image.samples);
  CHECK(decode(png(gradient(4, 3, 1)), 1).pixels == gradient(4, 3, 1).samples);
}

TEST_CASE("images: gray, transparent and 16-bit images are converted to the model's channels and 8 bits", "[input]") {
  CHECK(decode(png(plain(2, 1, {9}))).pixels == Bytes{9, 9, 9, 9, 9, 9});
  CHECK(decode(png(plain(2, 1, {9, 80, 200, 0}))).pixels == Bytes{9, 80, 200, 9, 80, 200});
  CHECK(decode(png(plain(2, 1, {9, 80, 200}), 16)).pixels == Bytes{9, 80, 200, 9, 80, 200});
  CHECK(difference(decode(jpeg(plain(9, 9, {77}))).pixels, plain(9, 9, {77, 77, 77}).samples) <= 2);
  CHECK(difference(decode(jpeg(plain(9, 9, {50, 50, 50})), 1).pixels, plain(9, 9, {50}).samples) <= 2);
}

TEST_CASE("images: baseline and progressive JPEGs are decoded, to a smaller size where that is enough", "[input]") {
  const auto image = plain(64, 40, {200, 100, 30});
  for (const bool progressive : {false, true}) {
    const std::string file = jpeg(image, progressive);
    CHECK(difference(decode(file).pixels, image.samples) <= 3);
    const DecodedImage half = decode_reduced(file, 0.4);
    CHECK((half.width == 32 && half.height == 20 && half.scale == 0.5));
    CHECK(difference(half.pixels, plain(32, 20, {200, 100, 30}).samples) <= 3);
    CHECK(decode_reduced(file, 0.51).scale == 0.625);
    CHECK(decode_reduced(file, 0.01).width == 8);
  }
}

TEST_CASE("images: every prefix of a file is refused", "[input]") {
  for (const std::string& file : {jpeg(gradient(40, 30)), jpeg(gradient(40, 30), true), png(gradient(9, 9))}) {
    for (std::size_t bytes = 0; bytes < file.size(); bytes += bytes < 40 ? 1 : 7) {
      CAPTURE(bytes, file.size());
      CHECK_FALSE(failure(file.substr(0, bytes)).empty());
    }
  }
  CHECK(failure("") == "is empty; get it again");
  const std::string file = jpeg(gradient(40, 30));
  CHECK_THAT(failure(file.substr(0, file.size() - 60)), ContainsSubstring("is no valid JPEG image"));
}

TEST_CASE("images: bytes after the end of an image are ignored", "[input]") {
  for (const std::string& file : {jpeg(gradient(40, 30)), jpeg(gradient(40, 30), true), png(gradient(9, 9))}) {
    const DecodedImage image = decode(file);
    for (const std::string& tail : {std::string(1, '\0'), std::string("a camera's own data"), file}) {
      const DecodedImage found = decode(file + tail);
      CHECK((found.width == image.width && found.height == image.height));
      CHECK(found.pixels == image.pixels);
    }
  }
}

TEST_CASE("images: files of other types are refused by their content", "[input]") {
  CHECK_THAT(failure("GIF89a and so on"), ContainsSubstring("is neither a JPEG, a PNG nor a WebP image"));
  CHECK_THAT(failure("a text"), ContainsSubstring("whatever its name says"));
  std::string damaged = png(gradient(9, 9));
  damaged[damaged.size() - 20] = static_cast<char>(~damaged[damaged.size() - 20]);
  CHECK_THAT(failure(damaged), ContainsSubstring("is no valid PNG image"));
}

TEST_CASE("images: impossible widths and heights are refused before anything is allocated", "[input]") {
  const std::string file = jpeg(gradient(16, 16));
  CHECK_THAT(failure(tests::jpeg_of_sides(file, 65500, 65500)), ContainsSubstring("65500 x 65500 pixels"));
  CHECK_FALSE(failure(tests::jpeg_of_sides(file, 65535, 65535)).empty());  // the library's own limit is lower
  CHECK_FALSE(failure(tests::jpeg_of_sides(file, 0, 16)).empty());
  CHECK_THAT(failure(png_of_sides(png(gradient(8, 8)), 65535, 65535)), ContainsSubstring("65535 x 65535 pixels"));
  CHECK_FALSE(failure(png_of_sides(png(gradient(8, 8)), 0, 8)).empty());
  CHECK_FALSE(failure(png_of_sides(png(gradient(8, 8)), 0xFFFFFFFF, 1)).empty());
}

TEST_CASE("images: resample copies a box of the output's size and filters other boxes", "[input]") {
  const DecodedImage image{.width = 6, .height = 4, .channels = 3, .pixels = gradient(6, 4).samples, .whole = {6, 4}};
  Bytes planes(3 * 2 * 3);
  resample(image, {2.0, 1.0, 3.0, 2.0}, 2, 3, planes.data());
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < 2; ++y) {
      for (std::size_t x = 0; x < 3; ++x) {
        CHECK(planes[(c * 2 + y) * 3 + x] == image.pixels[((y + 1) * 6 + x + 2) * 3 + c]);
      }
    }
  }
  // Half the size: four neighbors have the weights 1/8, 3/8, 3/8, 1/8. At the border, pixels that do not exist are left
  // out.
  const DecodedImage row{
      .width = 8, .height = 1, .channels = 1, .pixels = {0, 0, 80, 160, 240, 240, 0, 0}, .whole = {8, 1}};
  Bytes half(4);
  resample(row, {0.0, 0.0, 8.0, 1.0}, 1, 4, half.data());
  CHECK(half == Bytes{11, 120, 200, 34});
  // Twice the size: linear interpolation between the pixels' centers.
  const DecodedImage two{.width = 2, .height = 1, .channels = 1, .pixels = {0, 100}, .whole = {2, 1}};
  Bytes four(4);
  resample(two, {0.0, 0.0, 2.0, 1.0}, 1, 4, four.data());
  CHECK(four == Bytes{0, 25, 75, 100});
  // An image of one color keeps its color, for every box.
  const DecodedImage same{
      .width = 31, .height = 17, .channels = 3, .pixels = plain(31, 17, {7, 99, 255}).samples, .whole = {31, 17}};
  for (const CropBox& box :
       {CropBox{0.3, 0.7, 29.9, 15.2}, CropBox{5.5, 3.25, 1.5, 0.75}, CropBox{0.0, 0.0, 31.0, 17.0}}) {
    Bytes out(3 * 5 * 9);
    resample(same, box, 5, 9, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) CHECK(out[i] == (i < 45 ? 7 : i < 90 ? 99 : 255));
  }
}

TEST_CASE("images: test images are resized and center-cropped", "[input]") {
  const Framing framing{.resize = 256, .random_crop = {}, .seed = 0};
  const CropBox box = frame(framing, {512, 1024}, {224, 224}, {});
  CHECK((box.left == 32.0 && box.top == 288.0 && box.width == 448.0 && box.height == 448.0));
  const CropBox whole = frame({}, {10, 20}, {10, 20}, {});
  CHECK((whole.left == 0.0 && whole.top == 0.0 && whole.width == 10.0 && whole.height == 20.0));
  CHECK_THROWS_WITH(frame({}, {20, 10}, {10, 20}, {}),
                    ContainsSubstring("has 20 x 10 pixels, but the job's images have 10 x 20; set decoding.resize"));
}

TEST_CASE("images: a random crop is inside the image and a function of the example's position", "[input]") {
  const Framing framing{
      .resize = 32, .random_crop = engine::RandomResizedCrop{.min_area = 0.08F, .log_max_aspect = 0.2876F}, .seed = 5};
  const ImageSides sides = GENERATE(ImageSides{300, 200}, ImageSides{40, 1000}, ImageSides{1, 1});
  double least = 1.0;
  double most = 0.0;
  for (std::uint64_t batch = 0; batch < 200; ++batch) {
    for (std::uint32_t row = 0; row < 10; ++row) {
      const CropBox box = frame(framing, sides, {32, 32}, {batch, row});
      CHECK((box.left >= 0.0 && box.top >= 0.0 && box.width > 0.0 && box.height > 0.0));
      CHECK((box.left + box.width <= sides.width && box.top + box.height <= sides.height));
      const double area = box.width * box.height / sides.width / sides.height;
      least = std::min(least, area);
      most = std::max(most, area);
    }
  }
  if (sides.width != 300) return;  // only the box for the case that no other fits
  CHECK(least == Approx(0.08).margin(0.01));
  CHECK(most > 0.85);
  const auto left_of = [&](const Framing& of, const dataflow::ExamplePosition& position) {
    return frame(of, sides, {32, 32}, position).top;
  };
  CHECK(left_of(framing, {3, 4}) == left_of(framing, {3, 4}));
  CHECK(left_of(framing, {3, 4}) != left_of(framing, {3, 5}));
  CHECK(left_of(framing, {3, 4}) != left_of(framing, {4, 4}));
  Framing other = framing;
  other.seed = 6;
  CHECK(left_of(framing, {3, 4}) != left_of(other, {3, 4}));
}
