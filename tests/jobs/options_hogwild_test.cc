// `hogwild` of a job of layers: what it stands for, what it excludes, and its warnings.
#include <algorithm>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "tests/jobs/job_text.h"
#include "tests/process/ranks.h"
#include "tests/support/skip.h"
#include "tests/support/source_directory.h"
#include "train/processes/shared_job.h"

namespace arbalest::jobs {

using Catch::Matchers::StartsWith;

namespace {

constexpr const char* kLearners = "learners { per_device { fixed: 2 } }";

// Returns the valid job with these learners, devices and synchronization in lines 6 to 8.
std::string with(std::string_view synchronization, std::string_view learners = "fixed: 2",
                 std::string_view devices = "\"cpu\"") {
  return changed(kLearners, fmt::format("learners {{ per_device {{ {} }} }}", learners)) +
         fmt::format("devices: [{}]\nsynchronization {{ {} }}\n", devices, synchronization);
}

bool has(const std::vector<std::string>& all, const std::string& part) {
  return std::ranges::any_of(all, [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("hogwild trains models of layers, with the learning rate of one learner") {
  const JobOptions job = parse(with("hogwild {}"));
  CHECK_FALSE(job.sparse);
  CHECK(job.synchronization.scheme == sma::Scheme::kHogwild);
  CHECK(job.synchronization_path == "synchronization.hogwild");
  CHECK(job.synchronization.mode(2) == sma::SynchronizationMode::kShared);
  CHECK(job.synchronization.mode(1) == sma::SynchronizationMode::kNone);
  CHECK(job.learning_rate.with_learners == scheduler::RateScaling::kKeep);
  CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);
  CHECK(parse(job.resolved_text).synchronization.scheme == sma::Scheme::kHogwild);

  const JobOptions later = parse(with("s_sgd {} switch { at_epoch: 4 hogwild {} with_learners: KEEP }"));
  CHECK(later.learning_rate.with_learners == scheduler::RateScaling::kSqrt);
  REQUIRE(later.switches.size() == 1);
  CHECK(later.switches[0].to.scheme == sma::Scheme::kHogwild);
  CHECK(later.switches[0].with_learners == scheduler::RateScaling::kKeep);
}

TEST_CASE("hogwild is refused where learners cannot share weights, and the error names field and remedy") {
  for (const std::string scheme : {"hogwild {}", "s_sgd {} switch { at_epoch: 2 hogwild {} }"}) {
    CAPTURE(scheme);
    CHECK_THAT(refusal(with(scheme, "auto { max: 4 }")),
               StartsWith("job.txtpb:8:") &&
                   ContainsSubstring("error: hogwild and learners.per_device.auto exclude each other") &&
                   ContainsSubstring("set learners { per_device { fixed: ... } }"));
    // Without a GPU the device itself is refused first.
    const bool has_gpu = std::ranges::any_of(engine::list_devices(), &engine::DeviceSpec::is_cuda);
    CHECK_THAT(refusal(with(scheme, "fixed: 2", "\"cuda:0\"")),
               StartsWith("job.txtpb:7:11: error: ") && ContainsSubstring("devices: \"cpu\"") &&
                   ContainsSubstring(has_gpu ? "hogwild needs a CPU device, and 'cuda:0' is a GPU" : "'cuda:0'"));
    CHECK_THAT(refusal(with(scheme + " report_loss_gap: true")),
               ContainsSubstring("report_loss_gap does not work with hogwild: all learners share"));
  }
  CHECK_THAT(refusal(with("hogwild { staleness: 1 }")), ContainsSubstring("no field 'staleness' in hogwild"));
}

TEST_CASE("hogwild is refused over several devices") {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) tests::skip_test("needs two cores");
  const std::string devices = fmt::format("\"cpu:{}\", \"cpu:{}\"", cores[0], cores[1]);
  CHECK_THAT(refusal(with("hogwild {}", "fixed: 2", devices)),
             StartsWith("job.txtpb:7:") &&
                 ContainsSubstring("error: hogwild needs one CPU device, whose learners share memory, and the job has "
                                   "2; name one device with the cores of all, or choose async_sgd"));
}

TEST_CASE("hogwild is refused over several processes, on each of them") {
  const std::string path = tests::source_directory() + "/configs/logistic-digits.txtpb";
  const std::vector<std::string> settings{"devices=cpu", "learners.per_device.fixed=2", "synchronization=hogwild"};
  for (const std::string& thrown :
       tests::messages_of_ranks(2, [&](engine::process::World& world) { load_shared_job(world, path, settings); })) {
    CHECK_THAT(thrown, StartsWith("--set synchronization=hogwild: error: synchronization.hogwild: the learners of "
                                  "hogwild share the memory of one process, and this run has 2 processes"));
  }
}

TEST_CASE("hogwild warns that dense gradients overwrite each other, and of a scaled learning rate") {
  const auto warnings = [](const std::string& learners, const std::vector<std::string>& settings = {}) {
    return parse(with("hogwild {}", learners), settings).warnings;
  };
  const std::string dense =
      "synchronization.hogwild: the gradients of this model are dense, so 4 learners write all weights at once without "
      "locks: some updates overwrite each other, and results differ from run to run; async_sgd applies every update";
  CHECK(has(warnings("fixed: 4"), dense));
  CHECK(has(parse(with("s_sgd {} switch { at_epoch: 2 hogwild {} }")).warnings,
            "synchronization.switch[0].hogwild: the gradients of this model are dense, so 2 learners"));
  CHECK_FALSE(has(warnings("fixed: 1"), "are dense"));
  CHECK_FALSE(has(parse(with("async_sgd {}")).warnings, "are dense"));
  const std::string scaled =
      "synchronization.hogwild: with 2 learners there are as many steps as with one (each mini-batch is a step)";
  CHECK(has(warnings("fixed: 2", {"learning_rate.with_learners=LINEAR"}), scaled));
  CHECK_FALSE(has(warnings("fixed: 2"), scaled));
}

}  // namespace arbalest::jobs
