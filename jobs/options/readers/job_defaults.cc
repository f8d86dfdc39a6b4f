#include "jobs/options/readers/job_defaults.h"

#include <filesystem>

#include "dataflow/models/model_reader.h"
#include "jobs/options/data/data_defaults.h"
#include "jobs/options/divergence/divergence_reader.h"
#include "jobs/options/job_options.h"
#include "jobs/options/parameters/initialize_reader.h"
#include "jobs/options/readers/checkpoint_reader.h"
#include "jobs/options/readers/job_reader.h"
#include "jobs/options/readers/learning_rate_reader.h"
#include "jobs/options/readers/optimizer_reader.h"
#include "jobs/options/readers/processes_reader.h"
#include "jobs/options/synchronization/synchronization_reader.h"

namespace arbalest::jobs {

namespace {

void fill_training(v1::Training& training) {
  const TrainingOptions defaults;
  if (!training.has_batch_size()) training.set_batch_size(static_cast<int>(defaults.batch_size));
  if (!training.has_max_epochs()) training.set_max_epochs(defaults.max_epochs);
  if (!training.has_seed()) training.set_seed(defaults.seed);
  if (!training.has_precision()) training.set_precision(to_proto(defaults.precision));
  if (!training.has_batch_norm_statistics()) {
    training.set_batch_norm_statistics(defaults.reestimates_statistics ? v1::Training::REESTIMATED
                                                                       : v1::Training::AVERAGED);
  }
  if (!training.has_batch_norm_examples()) training.set_batch_norm_examples(defaults.statistics_examples);
  if (!training.has_moving_average_epochs()) training.set_moving_average_epochs(defaults.moving_average.epochs);
  fill_divergence(training);
}

}  // namespace

std::string name_after(const std::string& file) {
  const std::filesystem::path path = std::filesystem::path(file).filename();
  std::string name = path.extension() == ".txtpb" ? path.stem().string() : path.string();
  for (char& c : name) {
    if (!is_name_character(c)) c = '-';
  }
  if (name.empty()) return "job";
  if (name[0] == '.') name[0] = '-';
  return name;
}

void fill_defaults(v1::Job& job, const std::string& file) {
  if (!job.has_name()) job.set_name(name_after(file));
  if (job.has_model()) dataflow::fill_defaults(*job.mutable_model());
  if (job.has_data()) fill_defaults(*job.mutable_data(), file);
  if (job.has_initialize()) fill_defaults(*job.mutable_initialize(), file);
  fill_training(*job.mutable_training());
  fill_optimizer(*job.mutable_optimizer());
  fill_synchronization(*job.mutable_synchronization(), job.optimizer(), job.training().max_epochs());
  if (takes_whole_steps(job.synchronization()) && !job.learning_rate().has_with_learners()) {
    job.mutable_learning_rate()->set_with_learners(v1::LearningRate::KEEP);
  }
  fill_learning_rate(*job.mutable_learning_rate(), job.training().max_epochs());
  fill_checkpoint(*job.mutable_checkpoint());
  fill_processes(*job.mutable_processes());
  if (job.devices().empty()) {
    for (const engine::DeviceSpec& device : engine::list_devices()) job.add_devices(device.name);
  }
}

}  // namespace arbalest::jobs
