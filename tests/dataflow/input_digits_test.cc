#include "dataflow/input/digits/digits.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/read_example.h"

namespace {

using arbalest::dataflow::ByteImages;
using arbalest::dataflow::digits_normalization;
using arbalest::dataflow::load_digits;
using arbalest::dataflow::Split;
using arbalest::engine::host::Pool;

std::string sha256(const ByteImages& data) {
  std::vector<std::uint8_t> bytes = data.pixels();
  bytes.insert(bytes.end(), data.labels().begin(), data.labels().end());
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  REQUIRE(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::vector<std::uint8_t> image(const ByteImages& data, std::size_t example) {
  const auto begin = data.pixels().begin() + static_cast<std::ptrdiff_t>(example * 784);
  return {begin, begin + 784};
}

}  // namespace

TEST_CASE("digits: the bytes do not depend on the number of threads", "[input]") {
  Pool pool(GENERATE(1, 3));
  CHECK(sha256(*load_digits(Split::kTrain, digits_normalization(), pool)) ==
        "a76136ae980ffa2250ba10e68ed689f3f0aa28ecddb911342848a9f44399136c");
  CHECK(sha256(*load_digits(Split::kTest, digits_normalization(), pool)) ==
        "428a384ed5c17ebd23a2e08b0a25fd8c661e94b6d1dd81832d1a1e966a0c2206");
}

TEST_CASE("digits: sizes, classes in equal numbers, statistics", "[input]") {
  Pool pool(2);
  const auto train = load_digits(Split::kTrain, digits_normalization(), pool);
  const auto test = load_digits(Split::kTest, digits_normalization(), pool);
  CHECK(train->size() == 20'000);
  CHECK(test->size() == 5'000);
  for (const ByteImages* data : {train.get(), test.get()}) {
    CHECK(data->description() == arbalest::dataflow::digits_description());
    for (std::int32_t digit = 0; digit < 10; ++digit) {
      CHECK(std::count(data->labels().begin(), data->labels().end(), digit) == data->size() / 10);
    }
  }
  std::vector<float> pixels(784);
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t example = 0; example < test->size(); ++example) {
    arbalest::tests::read_image(*test, example, {}, pixels.data());
    for (const float value : pixels) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  }
  CHECK(sum / 5'000 / 784 == Approx(0.0).margin(0.01));
  CHECK(squares / 5'000 / 784 == Approx(1.0).margin(0.01));
}

TEST_CASE("digits: no image occurs twice in the training and test sets", "[input]") {
  Pool pool(2);
  std::set<std::vector<std::uint8_t>> seen;
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const auto data = load_digits(split, digits_normalization(), pool);
    for (std::size_t example = 0; example < data->labels().size(); ++example) seen.insert(image(*data, example));
  }
  CHECK(seen.size() == 25'000);
}

TEST_CASE("digits: every image shows a digit and has an almost empty border", "[input]") {
  Pool pool(2);
  const auto data = load_digits(Split::kTest, digits_normalization(), pool);
  std::int64_t ink_at_border = 0;
  for (std::size_t example = 0; example < 5'000; ++example) {
    const std::vector<std::uint8_t> pixels = image(*data, example);
    CHECK(std::count_if(pixels.begin(), pixels.end(), [](std::uint8_t byte) { return byte > 100; }) >= 15);
    for (std::size_t i = 0; i < 28; ++i) {
      const bool touches = std::max({pixels[i], pixels[27 * 28 + i], pixels[i * 28], pixels[i * 28 + 27]}) > 100;
      ink_at_border += touches ? 1 : 0;
    }
  }
  CHECK(ink_at_border < 5'000);  // of 140,000 border pixels
}
