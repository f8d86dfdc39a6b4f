// Datasets in GPU memory: gathering from them, and datasets that do not fit.
#include "dataflow/input/batches/cached_data.h"

#include <cstring>
#include <numeric>

#include "engine/base/error.h"
#include "options/loading/load_job.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/read_example.h"
#include "tests/support/source_directory.h"
#include "tests/support/training_rig.h"
#include "train/session/session.h"

namespace {

using namespace arbalest;
using Catch::Matchers::Contains;
using jobs::Session;
using tests::cuda_stand_in::fail_next;
using tests::cuda_stand_in::reset;

constexpr std::int64_t kExamples = 12;

std::unique_ptr<dataflow::ByteImages> small_dataset() {
  return tests::as_bytes(tests::MadeUpImages(kExamples, {2, 3, 6}, 3));
}

jobs::JobOptions digits_on_gpu() {
  return jobs::load_job(
      tests::source_directory() + "/configs/logistic-digits.txtpb",
      std::vector<std::string>{"devices=cuda:0", "learners.per_device.fixed=1", "training.batch_size=500"});
}

// Trains one round and returns the loss on the test set.
double train_a_round(Session& session) {
  session.scheduler().advance(session.training_ring(), 1);
  session.scheduler().drain();
  return session.scheduler().evaluate(session.test_ring()).loss();
}

bool is_cached(dataflow::BatchRing& ring) {
  const dataflow::Batch batch = ring.next().value();
  ring.release(batch.number);
  ring.restart();
  return batch.tensors.empty();
}

}  // namespace

TEST_CASE("a GPU gathers the same bits that the dataset reads") {
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  const auto data = small_dataset();
  const dataflow::CachedData cached(*data, *device);
  const auto pixels = static_cast<std::size_t>(data->description().image().elements());
  std::vector<std::int64_t> order(kExamples);
  std::iota(order.rbegin(), order.rend(), 0);
  const engine::Buffer indices = tests::upload(*device, order);
  const engine::Buffer images = device->allocate(order.size() * pixels * sizeof(float));
  const engine::Buffer labels = device->allocate(order.size() * sizeof(std::int32_t));
  const auto stream = device->create_stream({"test"});
  stream->enqueue(cached.gather({.indices = indices.as<std::int64_t>(),
                                 .images = images.as<float>(),
                                 .labels = labels.as<std::int32_t>(),
                                 .batch = kExamples}),
                  "gather");
  stream->record().synchronize();
  const auto found = tests::download<float>(*device, images.data(), order.size() * pixels);
  const auto found_labels = tests::download<std::int32_t>(*device, labels.data(), order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::vector<float> expected(pixels);
    tests::read_image(*data, order[i], {}, expected.data());
    CHECK(std::memcmp(found.data() + i * pixels, expected.data(), pixels * sizeof(float)) == 0);
    CHECK(found_labels[i] == dataflow::class_of(*data, order[i]));
  }
}

TEST_CASE("a dataset that does not fit on a GPU leaves no memory allocated there") {
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  const auto data = small_dataset();
  const std::size_t before = device->free_memory();
  int failures = 0;
  for (bool failed = true; failed; ++failures) {
    failed = false;
    fail_next("cudaMallocAsync", cudaErrorMemoryAllocation, failures);
    try {
      const dataflow::CachedData cached(*data, *device);
      CHECK(device->free_memory() < before);
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
      failed = true;
    }
    CHECK(device->free_memory() == before);
  }
  CHECK(failures == 6);  // two for the upload's stream, pixels, labels, table, and a last round without failure
}

TEST_CASE("a GPU stores each example once, and both training and validation sets are gathered there", "[training]") {
  struct Found {
    std::size_t free = 0;
    double loss = 0.0;
    double validation_loss = 0.0;
  };
  const auto train = [](const char* division, Session::Input input) {
    reset();
    jobs::JobOptions job = jobs::load_job(
        tests::source_directory() + "/configs/logistic-digits.txtpb",
        std::vector<std::string>{"devices=cuda:0", "learners.per_device.fixed=1", "training.batch_size=500", division});
    Session session(job, "", {}, input);
    CHECK(session.warnings().empty());
    Found found{.free = engine::open_device(job.devices[0])->free_memory()};
    found.loss = train_a_round(session);
    if (dataflow::BatchRing* ring = session.validation_ring(); ring != nullptr) {
      CHECK(is_cached(*ring) == (input == Session::Input::kResident));
      found.validation_loss = session.scheduler().evaluate(*ring).loss();
    }
    return found;
  };
  const Found whole = train("training.seed=1", Session::Input::kResident);
  const Found divided = train("data.validation.fraction=0.25", Session::Input::kResident);
  const Found ring = train("data.validation.fraction=0.25", Session::Input::kRing);
  constexpr std::size_t kAlignment = 4096;  // alignment of four buffers
  CHECK(divided.free + kAlignment > whole.free);
  CHECK(divided.free < whole.free + kAlignment);
  CHECK(divided.free + (std::size_t{15} << 20U) < ring.free);  // 25,000 images of 784 bytes
  CHECK(divided.loss == ring.loss);
  CHECK(divided.loss != whole.loss);
  CHECK(divided.validation_loss == ring.validation_loss);
  CHECK(divided.validation_loss > 0.0);
}

TEST_CASE("a dataset larger than a quarter of a GPU's memory goes through the ring, with a warning", "[training]") {
  reset();
  double expected = 0.0;
  {
    Session session(digits_on_gpu(), "", {});
    CHECK(is_cached(session.training_ring()));
    CHECK(is_cached(session.test_ring()));
    CHECK(session.warnings().empty());
    expected = train_a_round(session);
  }
  tests::cuda_stand_in::require_clean();
  reset({.memory = std::size_t{60} << 20U});  // the training images are 15 MiB
  Session session(digits_on_gpu(), "", {});
  CHECK_FALSE(is_cached(session.training_ring()));
  CHECK(is_cached(session.test_ring()));
  REQUIRE(session.warnings().size() == 1);
  CHECK_THAT(session.warnings()[0],
             Contains("digits train stay in host memory") && Contains("cuda:0: they would take"));
  CHECK(train_a_round(session) == expected);
}

TEST_CASE("a dataset whose upload runs out of memory goes through the ring, with a warning", "[training]") {
  reset();
  fail_next("cudaMallocAsync", cudaErrorMemoryAllocation, 1);  // for the test images
  jobs::JobOptions job = digits_on_gpu();
  const auto session = open_session(job, "", {});
  CHECK(is_cached(session->training_ring()));
  CHECK_FALSE(is_cached(session->test_ring()));
  REQUIRE_FALSE(job.warnings.empty());
  CHECK_THAT(job.warnings.back(), Contains("digits test stay in host memory") && Contains("cuda:0: cannot allocate"));
  CHECK(train_a_round(*session) > 0.0);
}
