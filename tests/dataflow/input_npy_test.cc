#include "dataflow/input/npy.h"

#include <string>
#include <vector>

#include "engine/error.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using dataflow::load_npy;
using dataflow::NpySource;
using tests::npy;
using tests::npy_file;
using tests::TemporaryDirectory;
using tests::write_text;

// Three images of 2 x 2 x 1 bytes.
const std::string kContent = "abcdefghijkl";
const std::string kImages = npy("|u1", "3, 2, 2, 1", kContent);
const std::string kLabels = npy("|u1", "3,", std::string("\x02\x00\x01", 3));

std::unique_ptr<dataflow::ByteImages> load(const std::string& images, const std::string& labels,
                                           const engine::Shape& image = {2, 2, 1}) {
  const TemporaryDirectory directory;
  write_text(directory / "images.npy", images);
  write_text(directory / "labels.npy", labels);
  return load_npy({"own train", directory / "images.npy", directory / "labels.npy", {image, 3}, {}});
}

std::string failure(const std::string& images, const std::string& labels) {
  try {
    load(images, labels);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    CHECK_THAT(error.what(), ContainsSubstring(".npy"));
    return error.what();
  }
  FAIL("the arrays were accepted");
  return "";
}

}  // namespace

TEST_CASE("npy: images and labels are read, labels of any integer type", "[input]") {
  const auto data = load(kImages, kLabels);
  CHECK(data->name() == "own train");
  CHECK(std::string(data->pixels().begin(), data->pixels().end()) == kContent);
  CHECK(data->labels() == std::vector<std::uint8_t>{2, 0, 1});
  for (const auto& [type, bytes] :
       std::vector<std::pair<std::string, std::size_t>>{{"|i1", 1}, {"<i2", 2}, {"<u2", 2}, {"<i4", 4}, {"<i8", 8}}) {
    std::string content;
    for (const char label : {'\x02', '\x00', '\x01'}) content += label + std::string(bytes - 1, '\0');
    CHECK(load(kImages, npy(type, "3,", content))->labels() == data->labels());
  }
  CHECK(load(npy("|u1", "3, 2, 2", kContent), kLabels, {1, 2, 2})->size() == 3);
}

TEST_CASE("npy: every prefix and trailing bytes are refused", "[input]") {
  for (std::size_t bytes = 0; bytes < kImages.size(); ++bytes) {
    CHECK_THAT(failure(kImages.substr(0, bytes), kLabels), ContainsSubstring("truncated"));
  }
  for (std::size_t bytes = 0; bytes < kLabels.size(); ++bytes) {
    CHECK_THAT(failure(kImages, kLabels.substr(0, bytes)), ContainsSubstring("truncated"));
  }
  CHECK_THAT(failure(kImages + "x", kLabels), ContainsSubstring("goes on after byte"));
}

TEST_CASE("npy: what is not an array of bytes in C order is refused", "[input]") {
  CHECK_THAT(failure("PK\x03\x04 and so on", kLabels), ContainsSubstring("is no .npy file"));
  CHECK_THAT(failure(npy_file("{'descr': '|u1', 'fortran_order': True, 'shape': (3, 2, 2, 1), }", kContent), kLabels),
             ContainsSubstring("Fortran order"));
  CHECK_THAT(failure(npy("<f4", "3, 2, 2, 1", std::string(48, 'x')), kLabels),
             ContainsSubstring("is of type '<f4'; images are unsigned bytes"));
  for (const bool labels : {false, true}) {
    const std::string objects = npy("|O", "3,", "\x80\x04pickled");
    CHECK_THAT(failure(labels ? kImages : objects, labels ? objects : kLabels),
               ContainsSubstring("pickled Python objects"));
  }
  CHECK_THAT(failure(npy_file("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (3,), }", "abc"), kLabels),
             ContainsSubstring("several fields"));
  CHECK_THAT(failure(npy_file("{'fortran_order': False, 'shape': (3,), }", "abc"), kLabels),
             ContainsSubstring("no 'descr'"));
  CHECK_THAT(failure(kImages, npy(">i4", "3,", std::string(12, '\0'))), ContainsSubstring("little endian"));
  CHECK_THAT(failure(kImages, npy("<f8", "3,", std::string(24, '\0'))), ContainsSubstring("labels are integers"));
}

TEST_CASE("npy: shapes that do not fit are refused, before anything is allocated", "[input]") {
  CHECK_THAT(failure(npy("|u1", "3, 1, 2, 2", kContent), kLabels), ContainsSubstring("need (n, 2, 2, 1)"));
  CHECK_THAT(failure(npy("|u1", "12", kContent), kLabels), ContainsSubstring("has the shape (12)"));
  CHECK_THAT(failure(npy("|u1", "9223372036854775807, 2, 2, 1", kContent), kLabels), ContainsSubstring("truncated"));
  CHECK_THAT(failure(npy("|u1", "99999999999999999999, 2, 2, 1", kContent), kLabels),
             ContainsSubstring("cannot be true"));
  CHECK_THAT(failure(npy("|u1", "0, 2, 2, 1", ""), kLabels), ContainsSubstring("holds no data"));
  CHECK_THAT(failure(kImages, npy("|u1", "3, 1", "abc")), ContainsSubstring("labels have one dimension"));
  CHECK_THAT(failure(kImages, npy("|u1", "2,", std::string(2, '\0'))),
             ContainsSubstring("holds 3 images") && ContainsSubstring("holds 2 labels"));
  CHECK_THAT(failure(npy_file("{'descr': '|u1'" + std::string(5000, ' '), ""), kLabels),
             ContainsSubstring("too long to be true"));
}

TEST_CASE("npy: a label out of range names its record", "[input]") {
  CHECK_THAT(failure(kImages, npy("|u1", "3,", std::string("\x02\x00\x03", 3))),
             ContainsSubstring("record 2: label 3 is not in [0, 3); labels begin with 0"));
  CHECK_THAT(failure(kImages, npy("|i1", "3,", std::string("\x02\xFF\x01", 3))),
             ContainsSubstring("record 1: label -1 is not in [0, 3)"));
  CHECK_THAT(failure(kImages, npy("<u8", "3,", std::string(8, '\0') + std::string(16, '\xFF'))),
             ContainsSubstring("record 1: label"));
}
