// Descriptions of examples, and typed access to their tensors.
#include "dataflow/input/input_description.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_memory.h"
#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/example.h"
#include "dataflow/input/formats/ratings.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "tests/support/catch.h"

using namespace arbalest;
using dataflow::InputDescription;
using dataflow::InputTensor;
using engine::DType;

namespace {

// Three features: numbers, ids below 7 and 9, integers that are all below 100.
InputDescription three_features() {
  return {{{"numbers", DType::kFloat32, {2, 3}},
           {"ids", DType::kInt32, {2}, {7, 9}},
           {"columns", DType::kInt32, {5}, {100}},
           {"label", DType::kInt32, {}, {4}}}};
}

// Example n has the features n + 0.5 and n, and the label -n. Example 1 cannot be read.
class Pairs final : public dataflow::Dataset {
 public:
  const std::string& name() const noexcept override { return name_; }
  const InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return 3; }
  bool skips_unreadable() const noexcept override { return true; }
  void read(std::int64_t example, const dataflow::ExamplePosition& /*position*/,
            std::span<const InputTensor> features) const override {
    features[0].as<float>().front() = static_cast<float>(example) + 0.5F;
    if (example == 1) engine::fail(engine::ErrorKind::kData, "example 1 is broken");
    features[1].as<std::int32_t>().front() = static_cast<std::int32_t>(example);
  }
  void read_label(std::int64_t example, const InputTensor& label) const override {
    label.as<float>().front() = -static_cast<float>(example);
  }

 private:
  std::string name_ = "pairs";
  InputDescription description_{
      {{"number", DType::kFloat32, {1}}, {"id", DType::kInt32, {1}, {3}}, {"label", DType::kFloat32, {}}}};
};

void check_internal(const std::function<void()>& call) {
  try {
    call();
    FAIL("does not throw");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kInternal);
  }
}

}  // namespace

TEST_CASE("a description of images and one of ratings tell what models need to know", "[input]") {
  const InputDescription images = dataflow::image_input({3, 4, 5}, 10);
  CHECK(images.is_known());
  CHECK(images.image() == engine::Shape{3, 4, 5});
  CHECK(images.classes() == 10);
  CHECK_FALSE(images.predicts_numbers());
  CHECK_FALSE(images.has_ids());
  CHECK(images.ids().empty());
  CHECK(images.feature_bytes() == 3 * 4 * 5 * 4);
  CHECK(images.only_feature().name == "image");

  const InputDescription ratings = dataflow::ratings_input({40, 30});
  CHECK(ratings.has_ids());
  CHECK(std::vector<std::int64_t>(ratings.ids().begin(), ratings.ids().end()) == std::vector<std::int64_t>{40, 30});
  CHECK(ratings.predicts_numbers());
  CHECK(ratings.classes() == 1);
  CHECK(ratings.feature_bytes() == 2 * 4);
  CHECK(ratings.label().dtype == DType::kFloat32);
  check_internal([&] { static_cast<void>(ratings.image()); });
  CHECK(ratings != dataflow::ratings_input({40, 31}));

  const InputDescription unknown;
  CHECK_FALSE(unknown.is_known());
  CHECK(unknown.classes() == 0);
  CHECK_FALSE(unknown.predicts_numbers());
  CHECK(unknown.features().empty());
  check_internal([&] { static_cast<void>(unknown.label()); });
}

TEST_CASE("a description may list any number of features", "[input]") {
  const InputDescription input = three_features();
  CHECK(input.features().size() == 3);
  CHECK(input.feature_bytes() == (6 + 2 + 5) * 4);
  CHECK(input.find("ids")->limit(1) == 9);
  CHECK(input.find("columns")->limit(4) == 100);
  CHECK(input.find("image") == nullptr);
  check_internal([&] { static_cast<void>(input.only_feature()); });
}

TEST_CASE("an example has the tensors of its description, and no type but theirs", "[input]") {
  const dataflow::Example example(three_features());
  CHECK(example.tensors().size() == 4);
  CHECK(example.features()[0].as<float>().size() == 6);
  CHECK(example.features()[1].as<std::int32_t>().size() == 2);
  CHECK(example.label().as<const std::int32_t>().size() == 1);
  check_internal([&] { static_cast<void>(example.features()[0].as<std::int32_t>()); });
  check_internal([&] { static_cast<void>(example.features()[1].as<const float>()); });
  check_internal([&] { static_cast<void>(example.label().as<float>()); });
}

TEST_CASE("a mini-batch's tensors lie apart, one row for each example", "[input]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const dataflow::BatchMemory memory(three_features(), 3, *device, 2);
  CHECK(dataflow::BatchMemory::bytes(three_features(), 3, 2) == 2 * (128 + 64 + 64 + 64));
  for (const int number : {0, 1}) {
    for (const InputTensor& tensor : memory.batch(number)) {
      CHECK(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64 == 0);
      CHECK(tensor.bytes().size() == 3 * tensor.description().bytes());
      std::ranges::fill(tensor.bytes(), std::byte{static_cast<unsigned char>(number)});
    }
  }
  const std::span ids = memory.batch(0)[1].as<std::int32_t>();
  CHECK(std::ranges::all_of(ids, [](std::int32_t id) { return id == 0; }));
  ids[4] = 8;
  CHECK(memory.batch(0)[1].row(2).as<std::int32_t>()[0] == 8);
  CHECK(memory.batch(0)[1].row(2).as<std::int32_t>().size() == 2);
  CHECK(memory.batch(1)[1].row(2).as<std::int32_t>()[0] == 0x01010101);
}

TEST_CASE("a ring fills every tensor of a mini-batch, also where an example is skipped or missing", "[input]") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  engine::host::Pool pool(1);
  const Pairs pairs;
  dataflow::SequentialOrder order(3, 4);
  dataflow::BatchRing ring(pairs, order, *device, pool, 1);
  const dataflow::Batch batch = ring.next().value();
  CHECK(batch.examples == 2);
  REQUIRE(batch.tensors.size() == 3);
  const std::span numbers = batch.tensors[0].as<const float>();
  CHECK(std::vector<float>(numbers.begin(), numbers.end()) == std::vector<float>{0.5F, 0.5F, 2.5F, 0.0F});
  const std::span ids = batch.tensors[1].as<const std::int32_t>();
  CHECK(std::vector<std::int32_t>(ids.begin(), ids.end()) == std::vector<std::int32_t>{0, 0, 2, 0});
  const std::span targets = batch.tensors[2].as<const float>();
  CHECK(targets[0] == 0.0F);
  CHECK(std::isnan(targets[1]));
  CHECK(targets[2] == -2.0F);
  CHECK(std::isnan(targets[3]));
  ring.release(batch.number);
}

TEST_CASE("datasets write their own types only", "[input]") {
  const dataflow::ByteImages images("own", dataflow::image_input({1, 1, 2}, 10), {}, {3, 4}, {7});
  const dataflow::Ratings ratings("own", dataflow::ratings_input({9, 9}), {1, 2}, {2.5F});
  const dataflow::Example image(images.description());
  const dataflow::Example rating(ratings.description());
  CHECK(dataflow::class_of(images, 0) == 7);
  check_internal([&] { dataflow::class_of(ratings, 0); });
  check_internal([&] { images.read(0, {}, rating.features()); });
  check_internal([&] { ratings.read(0, {}, image.features()); });
  check_internal([&] { images.read_label(0, rating.label()); });
  check_internal([&] { ratings.read_label(0, image.label()); });
}
