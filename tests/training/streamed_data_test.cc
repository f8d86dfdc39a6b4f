// Jobs whose training images are decoded on demand, and whose number of images is known only from the files.
#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/image_writer.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/memory_limit.h"
#include "tests/training/whole_run.h"
#include "train/inspection.h"
#include "train/session/session.h"

namespace arbalest::tests {
namespace {

constexpr int kBatch = 16;
constexpr int kBatchesPerEpoch = 4;
constexpr std::int64_t kBatchBytes = std::int64_t{kBatch} * 64 * 64 * 3 * 4;

class StreamedImages {
 public:
  StreamedImages() {
    std::string list;
    for (int i = 0; i < kBatch * kBatchesPerEpoch; ++i) {
      const std::string name = fmt::format("{}/{}.png", i % 2 == 0 ? "dark" : "light", i);
      std::filesystem::create_directories((directory_ / name).parent_path());
      write_text(directory_ / name, png(plain(8, 8, std::vector<std::uint8_t>(3, i % 2 == 0 ? 20 : 230))));
      list += name + "\n";
    }
    write_text(directory_ / "list.txt", list);
  }

  jobs::JobOptions job(const std::string& learners, const std::string& model = "zoo { logistic_regression {} }") const {
    return parse(
        fmt::format("name: 'streamed' model {{ {} }} data {{\n"
                    "images {{ directory: '{}' train: 'list.txt' test: 'list.txt' classes: 2\n"
                    "decoding {{ height: 64 width: 64 resize: 64 }} }} augmentation {{ random_resized_crop {{}} }} }}\n"
                    "training {{ batch_size: {} max_epochs: 2 }} learning_rate {{ base: 0.001 }} devices: 'cpu'\n"
                    "checkpoint {{ keep_last: 0 }} learners {{ per_device {{ {} }} }}",
                    model, directory_.path().string(), kBatch, learners));
  }

 private:
  TemporaryDirectory directory_;
};

std::int64_t needed(const std::vector<jobs::MemoryUse>& memory) { return memory.front().needed; }

// Trains and evaluates a little, to show that `session` works.
void train_a_little(jobs::Session& session) {
  session.scheduler().advance(session.training_ring(), 2);
  session.scheduler().drain();
  CHECK(session.scheduler().evaluate(session.test_ring()).examples == kBatch * kBatchesPerEpoch);
}

}  // namespace

TEST_CASE("the memory estimate includes rings for the maximum number of learners", "[training][memory]") {
  const StreamedImages images;
  const jobs::Inspection fixed = jobs::inspect(images.job("fixed: 16"));
  CHECK(fixed.most_learners_per_device == fixed.learners_per_device);
  CHECK(needed(fixed.most_memory) == needed(fixed.memory));
  const jobs::Inspection one = jobs::inspect(images.job("auto { max: 1 }"));
  for (const char* learners :
       {"auto { max: 16 }", "schedule { step { learners: 1 } step { at_batch: 8 learners: 16 } }"}) {
    CAPTURE(learners);
    const jobs::Inspection inspection = jobs::inspect(images.job(learners));
    CHECK(inspection.learners_per_device == std::vector<int>{1});
    CHECK(inspection.most_learners_per_device == std::vector<int>{16});
    // A single learner computes on all cores, so its plan takes slightly more memory.
    CHECK(static_cast<double>(needed(inspection.most_memory)) ==
          Approx(static_cast<double>(needed(fixed.memory))).epsilon(0.01));
    CHECK(needed(inspection.memory) == needed(inspection.most_memory) - 15 * inspection.learner_bytes);
    CHECK(needed(inspection.memory) > needed(one.memory) + (4 * 16 - 16) * kBatchBytes);
    CHECK(inspection.device_bytes + inspection.learner_bytes == needed(inspection.memory));
  }
}

// Rings for 1,024 learners would take 3 GiB.
TEST_CASE("the maximum of a tuned job is lowered to what fits in memory", "[training][memory]") {
  const StreamedImages images;
  jobs::JobOptions job = images.job("auto { max: 1024 }");
  const AddressSpaceLimit limit(needed(jobs::inspect(images.job("fixed: 16")).memory) + (std::int64_t{128} << 20U));
  const jobs::Inspection inspection = jobs::inspect(job);
  const std::string lowered = "where the job allows 1024: with one more the search could take ";
  REQUIRE(inspection.warnings.size() == 2);
  CHECK_THAT(inspection.warnings.back(), ContainsSubstring(lowered));
  CHECK(inspection.most_learners_per_device.front() < 128);
  CHECK(needed(inspection.most_memory) < inspection.available_bytes);

  const auto session = jobs::open_session(job, "", {});
  CHECK(session->learner_ceiling() >= 16);
  CHECK(session->learner_ceiling() < 256);
  REQUIRE(job.warnings.size() == 1);
  CHECK_THAT(job.warnings.front(), ContainsSubstring(lowered));
  train_a_little(*session);
}

TEST_CASE("steps after the end of the run are a warning once the files tell the run's length", "[training]") {
  const StreamedImages images;
  for (const auto& [at, is_reached] : {std::pair(6, true), std::pair(8, false)}) {
    CAPTURE(at);
    jobs::JobOptions job =
        images.job(fmt::format("schedule {{ step {{ learners: 2 }} step {{ at_batch: {} learners: 1 }} }}", at));
    CHECK(job.warnings.empty());
    jobs::open_session(job, "", {});
    REQUIRE(job.warnings.size() == (is_reached ? 0 : 1));
    if (!is_reached)
      CHECK_THAT(job.warnings.front(), ContainsSubstring("step[1] stands at mini-batch 8, but the run ends after 8"));
  }
}

}  // namespace arbalest::tests
