#include "options/split/split_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataflow/split/split_graph.h"
#include "sma/options.h"

namespace arbalest::jobs {

using dataflow::DenseSplit;
using dataflow::SplitLayer;

namespace {

const char* name_of(DenseSplit split) { return split == DenseSplit::kColumns ? "COLUMNS" : "ROWS"; }

// `processes`: those that have the devices.
std::string rest_of(const SplitLayer& layer, std::int64_t devices, int processes) {
  const char* const axis = layer.split == DenseSplit::kColumns ? "units" : "inputs";
  return fmt::format(
      "layer '{}': split: {} cannot divide {} {} equally over {} devices{}; change the number of {} or of devices",
      layer.name, name_of(layer.split), layer.length, axis, devices,
      processes == 1 ? "" : fmt::format(" of {} processes", processes), axis);
}

class SplitCheck {
 public:
  SplitCheck(const v1::Job& job, const JobOptions& options, dataflow::FieldIssues& issues)
      : job_(job), options_(options), issues_(issues), layers_(dataflow::split_layers(*options.graph)) {}

  void run(const RunShape& shape, const SoundOptions& sound) {
    if (layers_.empty()) return;
    check_lengths(shape);
    if (sound.synchronization) check_schemes();
    if (sound.learners) check_learners();
    if (options_.optimizer.clip_gradient_norm) {
      refuse("optimizer.clip_gradient_norm", "no device has the whole gradient, so its norm is not known");
    }
    if (options_.training.precision != engine::Precision::kFloat32) {
      refuse("training.precision", "devices of a split model send float32 only; leave precision out");
    }
    if (options_.reports_loss_gap) {
      refuse("synchronization.report_loss_gap", "the learners of s_sgd are equal; remove report_loss_gap");
    }
  }

 private:
  std::string path_of(const SplitLayer& layer) const {
    const auto& all = job_.model().layers();
    const auto found = std::ranges::find(all, layer.name, &v1::Layer::name);
    return fmt::format("model.layers[{}].dense.split", found - all.begin());
  }

  // `other`: the field that excludes split layers. Names both fields at the place of the first split layer.
  void refuse(const std::string& other, const std::string& why) {
    const SplitLayer& layer = layers_.front();
    issues_.add_another(path_of(layer), fmt::format("layer '{}': split: {} excludes {}: {}", layer.name,
                                                    name_of(layer.split), other, why));
  }

  void check_lengths(const RunShape& shape) {
    const std::int64_t devices = devices_of_all(shape, options_.devices);
    for (const SplitLayer& layer : layers_) {
      if (devices == 0 || layer.length % devices == 0) continue;
      issues_.add_another(path_of(layer), rest_of(layer, devices, shape.processes));
    }
  }

  void check_schemes() {
    const bool has_warm_start = !options_.switches.empty() && options_.switches.front().ends_warm_start;
    if (has_warm_start || options_.synchronization.scheme != sma::Scheme::kSSgd) {
      refuse(options_.synchronization_path,
             "all devices must take each step together; set synchronization { s_sgd {} }");
    }
    for (const SynchronizationSwitch& each : options_.switches) {
      if (!each.ends_warm_start) refuse(each.path, "the scheme must stay s_sgd; remove the switch");
    }
  }

  void check_learners() {
    if (options_.tuned || !options_.schedule.empty()) {
      const bool is_tuned = options_.tuned.has_value();
      const bool grows = job_.learners().per_device().has_growth();
      refuse(fmt::format("learners.per_device.{}", is_tuned ? "auto"
                                                   : grows  ? "growth"
                                                            : "schedule"),
             "split layers need exactly one learner per device; set learners { per_device { fixed: 1 } }");
      return;
    }
    const auto several = [](int count) { return count != 1; };
    const auto found = std::ranges::find_if(options_.learners_per_device, several);
    if (found == options_.learners_per_device.end()) return;
    refuse(fmt::format("learners.per_device of {}", *found),
           "split layers need exactly one learner per device; set learners { per_device { fixed: 1 } }");
  }

  const v1::Job& job_;
  const JobOptions& options_;
  dataflow::FieldIssues& issues_;
  const std::vector<SplitLayer> layers_;
};

}  // namespace

bool is_split(const JobOptions& options) {
  const int devices = static_cast<int>(options.devices.size()) + options.learners_elsewhere;
  return options.graph != nullptr && devices > 1 && !dataflow::split_layers(*options.graph).empty();
}

void check_split(const v1::Job& job, const JobOptions& options, const RunShape& shape, const SoundOptions& sound,
                 dataflow::FieldIssues& issues) {
  if (options.graph != nullptr) SplitCheck(job, options, issues).run(shape, sound);
}

std::string split_warning(const JobOptions& options, const RunShape& shape) {
  if (options.graph == nullptr || devices_of_all(shape, options.devices) != 1) return "";
  const std::vector<SplitLayer> layers = dataflow::split_layers(*options.graph);
  if (layers.empty()) return "";
  std::vector<std::string> names;
  for (const SplitLayer& layer : layers) names.push_back(fmt::format("'{}'", layer.name));
  return fmt::format("split has no effect on one device: {} {} whole; name several devices, or start several processes",
                     fmt::join(names, " and "), names.size() == 1 ? "stays" : "stay");
}

}  // namespace arbalest::jobs
