// Tests the choice of validation examples, and how datasets are divided and joined.
#include "dataflow/input/derived/validation_split.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/derived/joined_dataset.h"
#include "dataflow/input/example.h"
#include "dataflow/input/formats/ratings.h"
#include "dataflow/input/images/stored_images.h"
#include "tests/support/catch.h"
#include "tests/support/read_example.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using dataflow::ValidationRule;
using Examples = std::vector<std::int64_t>;

// Labels of four classes, with 400, 200, 100 and 50 examples.
std::vector<std::int32_t> uneven_labels() {
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < 750; ++i) labels.push_back(i < 400 ? 0 : i < 600 ? 1 : i < 700 ? 2 : 3);
  return labels;
}

// Images of 2 x 1 pixels: the example's number, and that number plus 100.
template <typename Pixel>
std::unique_ptr<dataflow::StoredImages<Pixel>> numbered(int examples, int first = 0) {
  std::vector<Pixel> pixels;
  std::vector<std::int32_t> labels;
  for (int i = first; i < first + examples; ++i) {
    pixels.push_back(static_cast<Pixel>(i));
    pixels.push_back(static_cast<Pixel>(i + 100));
    labels.push_back(i);
  }
  const dataflow::InputDescription description = dataflow::image_input({1, 1, 2}, 100);
  return std::make_unique<dataflow::StoredImages<Pixel>>("numbered", description, dataflow::Normalization{},
                                                         std::move(pixels), std::move(labels));
}

// Returns the numbers of the examples, read from the labels. The pixels must agree with them.
template <typename Pixel>
Examples numbers_in(const dataflow::Dataset& data) {
  const float scale = std::is_same_v<Pixel, float> ? 1.0F : 255.0F;
  Examples numbers;
  for (std::int64_t i = 0; i < data.size(); ++i) {
    float image[2];
    tests::read_image(data, i, {}, image);
    const std::int32_t label = dataflow::class_of(data, i);
    CHECK(std::abs(image[0] * scale - static_cast<float>(label)) < 1e-4F);
    CHECK(std::abs(image[1] * scale - static_cast<float>(label + 100)) < 1e-4F);
    numbers.push_back(label);
  }
  return numbers;
}

template <typename Pixel>
void check_split_off() {
  const auto images = numbered<Pixel>(7);
  const std::size_t before = images->memory_bytes();
  const Examples out{0, 3, 4};
  const auto taken = images->split_off("taken", out);
  CHECK(numbers_in<Pixel>(*images) == Examples{1, 2, 5, 6});
  CHECK(numbers_in<Pixel>(*taken) == out);
  CHECK(taken->name() == "taken");
  CHECK(taken->description() == images->description());
  // The memory of the three moved examples is still allocated.
  const std::size_t each = 2 * sizeof(Pixel) + sizeof(std::int32_t);
  if (images->stored_bytes()) {
    CHECK(images->stored_bytes()->bytes() == 4 * each);
    CHECK(images->memory_bytes() == 3 * each);
  } else {
    CHECK(images->memory_bytes() == before);
  }
}

}  // namespace

TEST_CASE("the validation examples agree with an independent implementation of the rule", "[input]") {
  const auto cases =
      nlohmann::json::parse(tests::read_text(tests::source_directory() + "/tests/goldens/validation_splits.json"));
  CHECK(cases.size() == 6);
  for (const auto& golden : cases) {
    const auto labels = golden["labels"].get<std::vector<std::int32_t>>();
    const ValidationRule rule{golden["fraction"], golden["seed"]};
    INFO("fraction " << rule.fraction << ", seed " << rule.seed);
    const std::int64_t classes = 1 + *std::ranges::max_element(labels);
    CHECK(dataflow::choose_validation(rule, labels, classes) == golden["validation"].get<Examples>());
  }
}

TEST_CASE("each class gives its share to validation, and every example is in one set", "[input]") {
  const std::vector<std::int32_t> labels = uneven_labels();
  const Examples chosen = dataflow::choose_validation({0.1, 1}, labels, 4);
  std::map<std::int32_t, int> of_class;
  for (const std::int64_t example : chosen) ++of_class[labels[static_cast<std::size_t>(example)]];
  CHECK(of_class == std::map<std::int32_t, int>{{0, 40}, {1, 20}, {2, 10}, {3, 5}});
  CHECK(std::ranges::is_sorted(chosen));
  Examples all = dataflow::others(chosen, std::ssize(labels));
  CHECK(std::ssize(all) + std::ssize(chosen) == std::ssize(labels));
  all.insert(all.end(), chosen.begin(), chosen.end());
  CHECK(std::set<std::int64_t>(all.begin(), all.end()).size() == labels.size());
}

TEST_CASE("the choice of validation examples depends on its seed only", "[input]") {
  const std::vector<std::int32_t> labels = uneven_labels();
  const Examples chosen = dataflow::choose_validation({0.1, 1}, labels, 4);
  CHECK(dataflow::choose_validation({0.1, 1}, labels, 4) == chosen);
  CHECK(dataflow::choose_validation({0.1, 1}, labels, 9) == chosen);  // classes without examples
  const Examples other = dataflow::choose_validation({0.1, 2}, labels, 4);
  Examples both;
  std::ranges::set_intersection(chosen, other, std::back_inserter(both));
  CHECK(both.size() < 20);  // 7.5 of 75, on average
  // A larger fraction chooses the same examples and more.
  const Examples more = dataflow::choose_validation({0.2, 1}, labels, 4);
  CHECK(std::ranges::includes(more, chosen));
  // Examples without a class stay in the training set.
  std::vector<std::int32_t> unreadable = labels;
  for (const std::int64_t example : chosen) unreadable[static_cast<std::size_t>(example)] = -1;
  Examples none;
  std::ranges::set_intersection(chosen, dataflow::choose_validation({0.5, 1}, unreadable, 4), std::back_inserter(none));
  CHECK(none.empty());
  CHECK(dataflow::class_sizes(unreadable, 4) == Examples{360, 180, 90, 45});
}

TEST_CASE("splitting off images keeps the order of the others", "[input]") {
  check_split_off<std::uint8_t>();
  check_split_off<float>();
}

TEST_CASE("splitting off ratings keeps the order of the others", "[input]") {
  dataflow::Ratings ratings("own", dataflow::ratings_input({9, 9}), {0, 1, 2, 3, 4, 5, 6, 7}, {0.F, 1.F, 2.F, 3.F});
  const auto taken = ratings.split_off("taken", Examples{1, 2});
  const auto content_of = [](const dataflow::Ratings& data) {
    std::vector<std::int32_t> content;
    for (std::int64_t i = 0; i < data.size(); ++i) {
      const dataflow::Example example(data.description());
      data.read(i, {}, example.features());
      data.read_label(i, example.label());
      std::ranges::copy(example.features().front().as<std::int32_t>(), std::back_inserter(content));
      content.push_back(static_cast<std::int32_t>(example.label().as<float>().front()));
    }
    return content;
  };
  CHECK(content_of(ratings) == std::vector<std::int32_t>{0, 1, 0, 6, 7, 3});
  CHECK(content_of(*taken) == std::vector<std::int32_t>{2, 3, 1, 4, 5, 2});
  CHECK(taken->memory_bytes() == 2 * 12);
}

TEST_CASE("joining two datasets of bytes gives stored bytes, other types do not", "[input]") {
  const auto bytes = dataflow::join(numbered<std::uint8_t>(3), numbered<std::uint8_t>(2, 3));
  CHECK(numbers_in<std::uint8_t>(*bytes) == Examples{0, 1, 2, 3, 4});
  REQUIRE(bytes->stored_bytes().has_value());
  CHECK(bytes->stored_bytes()->labels.size() == 5);
  const auto floats = dataflow::join(numbered<float>(3), numbered<float>(2, 3));
  CHECK(numbers_in<float>(*floats) == Examples{0, 1, 2, 3, 4});
  CHECK_FALSE(floats->stored_bytes().has_value());
  CHECK(floats->memory_bytes() == 5 * 12);
  CHECK(floats->name() == "numbered");
  const auto mixed = dataflow::join(numbered<std::uint8_t>(3), numbered<float>(2, 3));
  CHECK(mixed->size() == 5);
  CHECK(dataflow::class_of(*mixed, 4) == 4);
  CHECK_FALSE(mixed->stored_bytes().has_value());
  CHECK(mixed->memory_bytes() == 3 * 6 + 2 * 12);
}

TEST_CASE("joined datasets name the files that they have read by the numbers of their own examples", "[input]") {
  auto first = numbered<std::uint8_t>(3);
  auto second = numbered<float>(2, 3);
  first->keep_checksums(std::vector<dataflow::ReadExample>{{0, 70}, {1, 71}, {2, 72}});
  second->keep_checksums(std::vector<dataflow::ReadExample>{{0, 73}, {1, 74}});
  const auto joined = dataflow::join(std::move(first), std::move(second));
  CHECK(joined->take_read_log() == std::vector<dataflow::ReadExample>{{0, 70}, {1, 71}, {2, 72}, {3, 73}, {4, 74}});
  CHECK(joined->take_read_log().empty());
}

TEST_CASE("a pass over the examples may begin at an offset", "[input]") {
  dataflow::SequentialOrder order(5, 3, 10);
  CHECK(order.batches_per_epoch() == 2);
  Examples batch(3);
  order.indices(0, batch);
  CHECK(batch == Examples{10, 11, 12});
  order.indices(1, batch);
  CHECK(batch == Examples{13, 14, dataflow::BatchOrder::kNoExample});
}
