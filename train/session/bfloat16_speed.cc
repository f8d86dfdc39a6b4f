#include "train/session/bfloat16_speed.h"

#include <memory>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "options/loading/load_job.h"
#include "train/session/precision_trial.h"

namespace arbalest::jobs {

namespace {

using engine::Precision;

struct Model {
  const char* name;
  const char* job;
};

constexpr Model kModels[] = {{"LeNet", R"(model { zoo { lenet {} } } data { digits {} })"},
                             {"convolutions of 64 channels", R"(
      model {
        layers { name: "conv1" input: "image" conv { filters: 64 kernel: 3 padding: 1 } }
        layers { name: "relu1" input: "conv1" relu {} }
        layers { name: "conv2" input: "relu1" conv { filters: 64 kernel: 3 padding: 1 } }
        layers { name: "relu2" input: "conv2" relu {} }
        layers { name: "logits" input: "relu2" dense { units: 10 } }
        layers { name: "loss" input: ["logits", "label"] softmax_cross_entropy {} }
      }
      data { npy { directory: "." classes: 10 channels: 64 height: 8 width: 8 } })"}};

constexpr const char* kTraining = R"(
  devices: "cpu" learners { per_device { fixed: 1 } }
  training { batch_size: 32 } learning_rate { base: 0.01 })";

}  // namespace

std::vector<BFloat16Speed> measure_bfloat16_speed() {
  std::vector<BFloat16Speed> speeds;
  const engine::DeviceSpec cpu = engine::parse_device("cpu");
  if (!engine::precision_problem(cpu, Precision::kBFloat16).empty()) return speeds;
  try {
    std::vector<std::unique_ptr<engine::Device>> device;
    device.push_back(engine::open_device(cpu));
    for (const Model& model : kModels) {
      const JobOptions job = parse_job(SourceText(model.name, std::string(model.job) + kTraining));
      const StepSeconds seconds = time_precisions(job, Precision::kBFloat16, device);
      speeds.push_back({model.name, seconds.float32 / seconds.precision});
    }
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kOutOfMemory) throw;
    speeds.clear();
  }
  return speeds;
}

}  // namespace arbalest::jobs
