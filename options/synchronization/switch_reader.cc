#include "options/synchronization/switch_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "messages/text.h"
#include "options/readers/learning_rate_reader.h"
#include "options/synchronization/scheme_kinds.h"

namespace arbalest::jobs {

using dataflow::below;
using dataflow::out_of_range;

namespace {

class SwitchReader {
 public:
  SwitchReader(const v1::Switch& message, std::string path, JobOptions& options, dataflow::FieldIssues& issues)
      : message_(message), path_(std::move(path)), options_(options), issues_(issues) {}

  void read() {
    SynchronizationSwitch read;
    read.at_epoch = read_epoch();
    const PlacedScheme kind = read_scheme(message_, path_);
    read.to = kind.options;
    read.path = kind.path;
    read.place = path_;
    if (kind.path.empty()) {
      issues_.add(path_, "the switch names no kind; add one, as in switch { at_epoch: 25 local_sgd {} }");
    }
    if (message_.async_sgd().warm_start_epochs() != 0.0) {
      issues_.add(kind.path + ".warm_start_epochs", "warm_start_epochs has no effect in a switch; remove it");
    }
    read.with_learners = message_.has_with_learners() ? from_proto(message_.with_learners()) : previous_scaling();
    read.learners_per_device = read_learners();
    check_order(read);
    options_.switches.push_back(std::move(read));
  }

 private:
  scheduler::RateScaling previous_scaling() const {
    return options_.switches.empty() ? options_.learning_rate.with_learners : options_.switches.back().with_learners;
  }

  std::vector<int> previous_learners() const {
    std::vector<int> learners = options_.learners_per_device;
    for (const SynchronizationSwitch& each : options_.switches) {
      if (!each.learners_per_device.empty()) learners = each.learners_per_device;
    }
    return learners;
  }

  double read_epoch() {
    if (message_.has_at_epoch()) return message_.at_epoch();
    if (!message_.has_at_drop()) {
      issues_.add(path_, "the switch does not say when; add at_epoch, as in switch { at_epoch: 25 local_sgd {} }");
      return 0.0;
    }
    const auto epoch = options_.learning_rate.epoch_of_drop(message_.at_drop());
    if (!epoch) {
      issues_.add(
          path_ + ".at_drop",
          fmt::format(
              "the learning rate has no decay step {}: at_drop counts the decay steps of a multistep or step schedule "
              "from 1; write at_epoch instead",
              message_.at_drop()));
    }
    return epoch.value_or(0.0);
  }

  std::vector<int> read_learners() {
    if (!message_.has_learners()) return {};
    const std::string path = path_ + ".learners";
    const int learners = message_.learners();
    const std::vector<int> before = previous_learners();
    if (options_.tuned || !options_.schedule.empty()) {
      issues_.add(path,
                  "learners of a switch need a fixed number before it; write learners { per_device { fixed: ... } }");
    }
    const int most = before.empty() ? learners : std::ranges::min(before);
    if (learners < 1 || learners > most) {
      issues_.add(
          path,
          fmt::format("the learners of a switch must be in [1, {}], because a switch cannot add learners; it is {}",
                      most, learners));
    }
    return std::vector<int>(options_.devices.size(), learners);
  }

  void check_order(const SynchronizationSwitch& read) {
    const std::string path = path_ + (message_.has_at_drop() ? ".at_drop" : ".at_epoch");
    if (issues_.has(path) || issues_.has(path_)) return;
    const double before = options_.switches.empty() ? 0.0 : options_.switches.back().at_epoch;
    const int epochs = options_.training.max_epochs;
    if (!(read.at_epoch > before)) {
      issues_.add(
          path, options_.switches.empty()
                    ? fmt::format("a switch must come after the start: at_epoch must be above 0, not {}", read.at_epoch)
                    : fmt::format("switches must ascend: epoch {} does not follow {}{}", read.at_epoch, before,
                                  options_.switches.back().ends_warm_start
                                      ? ", where the warm start of async_sgd ends (warm_start_epochs)"
                                      : ""));
    } else if (read.at_epoch >= epochs) {
      issues_.add(path, fmt::format("the run ends after {} (training.max_epochs): the switch at epoch {} would have no "
                                    "effect",
                                    counted(epochs, "epoch"), read.at_epoch));
    }
  }

  const v1::Switch& message_;
  std::string path_;
  JobOptions& options_;
  dataflow::FieldIssues& issues_;
};

}  // namespace

void read_switch(const v1::Switch& message, const std::string& path, JobOptions& options,
                 dataflow::FieldIssues& issues) {
  SwitchReader(message, path, options, issues).read();
}

void add_warm_start(const v1::AsyncSgd& kind, JobOptions& options, dataflow::FieldIssues& issues) {
  const std::string path = options.synchronization_path + ".warm_start_epochs";
  const double epochs = kind.warm_start_epochs();
  const double most = options.training.max_epochs;
  if (std::string problem = out_of_range("warm_start_epochs", epochs, below(0.0, most)); !problem.empty()) {
    issues.add(path, fmt::format("{}: it must leave epochs of training.max_epochs to async_sgd", problem));
    return;
  }
  if (epochs == 0.0 || options.synchronization.mode(2) != sma::SynchronizationMode::kServer) return;
  options.switches.push_back({.at_epoch = epochs,
                              .to = options.synchronization,
                              .learners_per_device = {},
                              .with_learners = options.learning_rate.with_learners,
                              .path = options.synchronization_path,
                              .place = path,
                              .ends_warm_start = true});
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
}

}  // namespace arbalest::jobs
