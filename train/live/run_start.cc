#include "train/live/run_start.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/process/all_gather.h"
#include "engine/process/packing.h"
#include "messages/text.h"
#include "train/learners/learner_changes.h"

namespace arbalest::jobs {

namespace {

// "mnist train: 54,000 training, 6,000 validation and 10,000 test examples"
std::string data_text(const Session& session) {
  const std::int64_t validation = session.validation_examples();
  return fmt::format("{}: {} training{} and {}", session.training_data().name(),
                     grouped(session.training_data().size()),
                     validation == 0 ? "" : fmt::format(", {} validation", grouped(validation)),
                     counted(session.test_examples(), "test example"));
}

// "8 layers, 431,080 parameters, 5,010 of them trained"
std::string model_text(const JobOptions& job, const Session& session) {
  const std::int64_t parameters = session.parameters();
  const std::int64_t trained = session.trained_parameters();
  return fmt::format("{}, {}{}", counted(static_cast<std::int64_t>(job.graph->nodes().size()), "layer"),
                     counted(parameters, "parameter"),
                     trained == parameters ? "" : fmt::format(", {} of them trained", grouped(trained)));
}

// "cosine, anew at epochs 10 and 20"; "" without restarts.
std::string restarts_text(const scheduler::LearningRateSchedule& schedule) {
  std::vector<std::string> epochs;
  for (const scheduler::Restart& restart : schedule.restarts) epochs.push_back(fmt::format("{:g}", restart.epoch));
  if (epochs.empty()) return "";
  return fmt::format("{}, which starts anew at epoch {} (learning_rate.restart)", scheduler::name_of(schedule.curve),
                     fmt::join(epochs, ", "));
}

}  // namespace

std::vector<std::string> device_names(const std::vector<engine::DeviceSpec>& devices, engine::process::World& world) {
  std::vector<std::string> own;
  for (const engine::DeviceSpec& device : devices) own.push_back(device.name);
  if (world.size() == 1) return own;
  std::vector<std::string> all;
  const std::vector<std::string> parts = engine::process::all_gather(world, engine::process::pack(own));
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    for (const std::string& name : engine::process::unpack(parts[rank])) {
      all.push_back(fmt::format("rank {}: {}", rank, name));
    }
  }
  return all;
}

RunStart describe_run(const JobOptions& job, const Session& session, EvaluationSet accuracy_set) {
  RunStart start{.job = job.name,
                 .model = model_text(job, session),
                 .data = data_text(session),
                 .learners_per_device = job.learners_per_device,
                 .is_tuned = job.tuned.has_value(),
                 .learning_rate = restarts_text(job.learning_rate),
                 .learners_change = describe_changes(job),
                 .metrics = job.graph->metrics(),
                 .batch_size = job.training.batch_size,
                 .precision = job.training.precision,
                 .max_epochs = job.training.max_epochs,
                 .target_accuracy = job.training.target_accuracy,
                 .accuracy_set = accuracy_set,
                 .dropped_examples = session.training_order().dropped_examples(),
                 .warnings = job.warnings,
                 .job_text = job.resolved_text};
  return start;
}

}  // namespace arbalest::jobs
