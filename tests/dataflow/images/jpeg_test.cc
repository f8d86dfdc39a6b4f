// JPEG files: which warnings of libjpeg are damage, and parts of images.
#include "dataflow/input/images/image_decoder.h"
#include "dataflow/input/images/resample.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/data_failure.h"
#include "tests/support/image_parts.h"

namespace {

using namespace arbalest;
using dataflow::CropBox;
using dataflow::decode_image;
using dataflow::decode_whole_image;
using dataflow::DecodedImage;
using dataflow::ImageSides;
using tests::bytes_of;
using tests::data_failure;
using tests::gradient;
using tests::jpeg;
using Bytes = std::vector<std::uint8_t>;

Bytes pixels_of(const std::string& file) { return decode_whole_image(bytes_of(file), 3, {}).pixels; }

std::string refusal(const std::string& file) {
  return data_failure([&] { pixels_of(file); });
}

// The place of the marker's second byte.
std::size_t marker(const std::string& file, char kind) {
  const std::size_t at = file.find(std::string("\xFF") + kind);
  REQUIRE(at != std::string::npos);
  return at + 1;
}

}  // namespace

TEST_CASE("jpeg: what is wrong in headers only does not change a pixel", "[input]") {
  const std::string file = jpeg(gradient(40, 30));
  const Bytes pixels = pixels_of(file);
  const std::size_t revision = file.find(std::string("JFIF\0", 5)) + 5;
  REQUIRE(file.substr(revision, 2) == "\x01\x01");
  for (const char* other : {"\0\0", "\x00\x02", "\x03\x07", "\x77\x00"}) {  // JFIF 0.00 and others
    std::string changed = file;
    changed.replace(revision, 2, other, 2);
    CHECK(pixels_of(changed) == pixels);
  }
  const std::size_t scan = marker(file, '\xDA');
  const std::size_t last = scan + 1 + static_cast<std::uint8_t>(file[scan + 2]) - 1;  // the last byte of the segment
  REQUIRE(static_cast<std::uint8_t>(file[last - 1]) == 63);
  for (const char end : {'\0', '\x05'}) {  // phones write Se = 0
    std::string changed = file;
    changed[last - 1] = end;
    CHECK(pixels_of(changed) == pixels);
  }
  const std::string adobe = std::string("\xFF\xEE\x00\x0E", 4) + std::string("Adobe\0\x64\0\0\0\0\x09", 12);
  CHECK(pixels_of(file.substr(0, 2) + adobe + file.substr(2)) == pixels);  // an unknown transform
  CHECK(pixels_of(file.substr(0, scan - 1) + std::string("\x01\x02\x03") + file.substr(scan - 1)) == pixels);
  const std::string profile = std::string("\xFF\xE2\x00\x12", 4) + std::string("ICC_PROFILE\0\x09\x02zz", 16);
  CHECK(pixels_of(file.substr(0, 2) + profile + file.substr(2)) == pixels);
}

TEST_CASE("jpeg: missing and wrong data is damage", "[input]") {
  const std::string file = jpeg(gradient(64, 48));
  const std::size_t scan = marker(file, '\xDA');
  const std::size_t data = scan + 1 + static_cast<std::uint8_t>(file[scan + 2]);
  const std::size_t middle = data + (file.size() - data) / 2;
  CHECK_THAT(refusal(file.substr(0, middle)), ContainsSubstring("Premature end of JPEG file"));
  // An end in the middle.
  CHECK_THAT(refusal(file.substr(0, middle) + "\xFF\xD9" + file.substr(middle)),
             ContainsSubstring("premature end of data segment"));
  std::string codes = file;
  for (std::size_t at = middle; at < middle + 24; at += 2) codes.replace(at, 2, std::string("\xFF\0", 2));
  CHECK_THAT(refusal(codes), ContainsSubstring("is no valid JPEG image"));
  for (const bool progressive : {false, true}) {
    const std::string whole = jpeg(gradient(64, 48), progressive);
    for (std::size_t bytes = 2; bytes < whole.size(); bytes += 13) CHECK_FALSE(refusal(whole.substr(0, bytes)).empty());
  }
}

TEST_CASE("jpeg: damage outside the part that is read is damage, too", "[input]") {
  const std::string file = jpeg(gradient(200, 160));
  const auto read_top = [](const std::string& bytes) {
    decode_image(bytes_of(bytes), 3, {}, [](ImageSides) {
      return dataflow::WantedPart{{20.0, 8.0, 40.0, 24.0}, {20, 12}};
    });
  };
  CHECK_NOTHROW(read_top(file));
  const std::string cut = file.substr(0, file.size() * 9 / 10);
  CHECK_THAT(data_failure([&] { read_top(cut); }), ContainsSubstring("Premature end of JPEG file"));
}

TEST_CASE("jpeg: a part has the pixels of the whole image, in every sampling of colors", "[input]") {
  const auto [across, down] = GENERATE(table<int, int>({{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}}));
  const bool progressive = GENERATE(false, true);
  const int channels = GENERATE(1, 3);
  CAPTURE(across, down, progressive, channels);
  const std::string file =
      tests::jpeg_of(gradient(157, 131), {.progressive = progressive, .luma_across = across, .luma_down = down});
  const DecodedImage whole = decode_whole_image(bytes_of(file), channels, {});
  CHECK((whole.width == 157 && whole.left == 0 && whole.top == 0));
  for (const CropBox& box :
       {CropBox{0.0, 0.0, 50.0, 40.0}, CropBox{33.0, 21.0, 40.0, 33.0}, CropBox{107.0, 91.0, 50.0, 40.0},
        CropBox{1.5, 60.25, 150.0, 20.5}, CropBox{70.0, 0.0, 9.0, 131.0}, CropBox{150.0, 129.0, 3.0, 2.0},
        CropBox{16.0, 16.0, 32.0, 32.0}, CropBox{31.0, 47.0, 99.0, 1.0}}) {
    for (const ImageSides target : {ImageSides{13, 11}, ImageSides{40, 60}}) {
      CAPTURE(box.left, box.top, target.width);
      const DecodedImage part = decode_image(bytes_of(file), channels, {}, [&](ImageSides) {
        return dataflow::WantedPart{box, target};
      });
      CHECK((part.whole.width == 157 && part.whole.height == 131));
      Bytes of_whole(static_cast<std::size_t>(channels * target.width * target.height));
      Bytes of_part(of_whole.size());
      resample(whole, box, target.height, target.width, of_whole.data());
      resample(part, box, target.height, target.width, of_part.data());
      CHECK(of_part == of_whole);
    }
  }
}

TEST_CASE("jpeg: a file with more scans than programs write is refused", "[input]") {
  const auto image = tests::gradient(40, 30, 3, 1);
  const auto decoded = [&](int bands) {
    return decode_whole_image(bytes_of(tests::jpeg_of(image, {.bands = bands})), 3, {}).pixels;
  };
  CHECK(decoded(20) == decode_whole_image(bytes_of(jpeg(image)), 3, {}).pixels);  // 66 scans
  CHECK_THAT(tests::data_failure([&] { decoded(63); }), ContainsSubstring("more than 100 scans"));
}

TEST_CASE("jpeg: only reduced decoding leaves the size of the file", "[input]") {
  const std::string file = jpeg(tests::plain(64, 40, {200, 100, 30}));
  const auto scale_of = [&](bool is_reduced, int width) {
    const auto choose = [&](ImageSides sides) {
      return dataflow::WantedPart{{0.0, 0.0, 64.0, 40.0}, {width, width * sides.height / sides.width}};
    };
    return decode_image(bytes_of(file), 3, {.is_reduced = is_reduced}, choose).scale;
  };
  CHECK((scale_of(true, 8) == 0.125 && scale_of(true, 24) == 0.375));
  CHECK((scale_of(false, 8) == 1.0 && scale_of(false, 24) == 1.0));
}
