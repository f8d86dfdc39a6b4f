// Jobs with layers that are split over devices, and what excludes them.
#include <string>

#include <fmt/format.h>

#include "dataflow/split/split_graph.h"
#include "engine/host/topology.h"
#include "options/loading/parsed_job.h"
#include "options/split/split_check.h"
#include "tests/jobs/job_text.h"
#include "tests/support/skip.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kModel =
    "model {\n"
    "layers { name: 'hidden' input: 'image' dense { units: 30 split: COLUMNS } }\n"
    "layers { name: 'relu' input: 'hidden' relu {} }\n"
    "layers { name: 'logits' input: 'relu' dense { units: 10 split: ROWS } }\n"
    "layers { name: 'loss' input: 'logits' input: 'label' softmax_cross_entropy {} }\n"
    "}\n";

std::string split_job(const std::string& learners = "per_device { fixed: 1 }",
                      const std::string& synchronization = "s_sgd {}", const std::string& more = "") {
  return fmt::format(
      "{}data {{ digits {{}} }}\nlearning_rate {{ base: 0.01 }}\nlearners {{ {} }}\nsynchronization {{ {} }}\n{}\n",
      kModel, learners, synchronization, more);
}

std::vector<std::string> two_devices() {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) tests::skip_test("needs two cores");
  return {fmt::format("devices=[\"cpu:{}\", \"cpu:{}\"]", cores[0], cores[1])};
}

void check_refused(const std::string& text, const std::string& message) {
  CHECK_THAT(refusal(text, two_devices()), ContainsSubstring(message));
}

}  // namespace

TEST_CASE("split layers are read, and written to the resolved job") {
  const JobOptions job = parse(split_job(), two_devices());
  CHECK(is_split(job));
  const std::vector<dataflow::SplitLayer> layers = dataflow::split_layers(*job.graph);
  REQUIRE(layers.size() == 2);
  CHECK(layers[0].name == "hidden");
  CHECK(layers[0].split == dataflow::DenseSplit::kColumns);
  CHECK(layers[0].length == 30);
  CHECK(layers[1].split == dataflow::DenseSplit::kRows);
  CHECK(layers[1].length == 30);
  CHECK_THAT(job.resolved_text, ContainsSubstring("split: COLUMNS") && ContainsSubstring("split: ROWS"));
  CHECK(parse(job.resolved_text).resolved_text == job.resolved_text);
  CHECK(job.warnings.empty());
}

TEST_CASE("one device has the whole layers of a split job, and a warning says so") {
  const JobOptions job = parse(split_job(), {"devices=[\"cpu\"]"});
  CHECK_FALSE(is_split(job));
  REQUIRE(job.warnings.size() == 1);
  CHECK_THAT(job.warnings[0], ContainsSubstring("split has no effect on one device: 'hidden' and 'logits' stay whole"));
}

TEST_CASE("a wrong number beside split layers hides none of the conflicts that it does not decide") {
  const std::string wrong = refusal(
      split_job("per_device { fixed: 2 }", "async_sgd { staleness: -3 }", "optimizer { clip_gradient_norm: 1 }"),
      two_devices());
  CHECK_THAT(wrong, ContainsSubstring("staleness") &&
                        ContainsSubstring("split: COLUMNS excludes learners.per_device of 2") &&
                        ContainsSubstring("split: COLUMNS excludes optimizer.clip_gradient_norm"));
}

TEST_CASE("what excludes split layers is named with them") {
  const std::string one = "per_device { fixed: 1 }";
  check_refused(split_job(one, "sma {}"),
                "job.txtpb:2:58: error: layer 'hidden': split: COLUMNS excludes synchronization.sma: all devices must "
                "take each step together; set synchronization { s_sgd {} }");
  check_refused(split_job(one, "async_sgd {}"),
                "split: COLUMNS excludes synchronization.async_sgd: all devices must take each step together; set "
                "synchronization { s_sgd {} }");
  check_refused(split_job(one, "s_sgd {} switch { at_epoch: 2 local_sgd {} }"),
                "split: COLUMNS excludes synchronization.switch[0].local_sgd: the scheme must stay s_sgd");
  check_refused(split_job("per_device { fixed: 2 }"),
                "split: COLUMNS excludes learners.per_device of 2: split layers need exactly one learner per device");
  check_refused(split_job("per_device { auto {} }"),
                "split: COLUMNS excludes learners.per_device.auto: split layers need exactly one learner per device");
  check_refused(split_job("per_device { growth { to: 4 } }"), "split: COLUMNS excludes learners.per_device.growth");
  check_refused(split_job(one, "s_sgd {}", "optimizer { sgd {} clip_gradient_norm: 1 }"),
                "split: COLUMNS excludes optimizer.clip_gradient_norm: no device has the whole gradient");
}

TEST_CASE("axes that the devices cannot divide are refused") {
  std::string text = split_job();
  text.replace(text.find("units: 30"), 9, "units: 31");
  // One device takes the whole layers, so the setting of the devices is to blame.
  const std::string said = refusal(text, two_devices(), engine::ErrorKind::kUsage);
  CHECK_THAT(said, ContainsSubstring("layer 'hidden': split: COLUMNS cannot divide 31 units equally over 2 devices; "
                                     "change the number of units or of devices"));
  CHECK_THAT(said, ContainsSubstring("layer 'logits': split: ROWS cannot divide 31 inputs equally over 2 devices"));
  // A run of several processes divides the layers over the devices of all.
  const ParsedJob job(SourceText("job.txtpb", text));
  CHECK_NOTHROW(job.read(two_devices(), {.processes = 2}));
  const auto of_two_hosts = [&] { job.read(two_devices(), {.processes = 4, .hosts = 2}); };
  CHECK_THROWS_WITH(of_two_hosts(),
                    ContainsSubstring("COLUMNS cannot divide 31 units equally over 4 devices of 4 processes"));
  const auto of_three = [&] { job.read(two_devices(), {.processes = 3, .devices = 3}); };
  CHECK_THROWS_WITH(of_three(),
                    ContainsSubstring("COLUMNS cannot divide 31 units equally over 3 devices of 3 processes"));
}

TEST_CASE("the memory of a device is a positive number") {
  CHECK(parse(split_job("per_device { fixed: 1 }", "s_sgd {}", "device_memory_mib: 1.5"), two_devices())
            .device_memory_bytes == 3 << 19);
  check_refused(split_job("per_device { fixed: 1 }", "s_sgd {}", "device_memory_mib: 0"),
                "device_memory_mib must be in (0, 1000000000], not 0");
}

}  // namespace arbalest::jobs
