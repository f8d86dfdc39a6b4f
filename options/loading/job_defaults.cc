#include "options/loading/job_defaults.h"

#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/model_reader.h"
#include "options/data/data_defaults.h"
#include "options/divergence/divergence_reader.h"
#include "options/parameters/initialize_reader.h"
#include "options/readers/learning_rate_reader.h"
#include "options/readers/name_reader.h"
#include "options/synchronization/synchronization_reader.h"

namespace arbalest::jobs {

void fill_defaults(v1::Job& job, const std::string& file) {
  if (!job.has_name()) job.set_name(name_after(file));
  if (takes_whole_steps(job.synchronization()) && !job.learning_rate().has_with_learners()) {
    job.mutable_learning_rate()->set_with_learners(v1::LearningRate::KEEP);
  }
  dataflow::fill_fields(job);
  if (job.has_model()) dataflow::fill_defaults(*job.mutable_model());
  if (job.has_data()) fill_defaults(*job.mutable_data(), file);
  if (job.has_initialize()) fill_defaults(*job.mutable_initialize(), file);
  fill_divergence(*job.mutable_training());
  fill_synchronization(*job.mutable_synchronization(), job.optimizer(), job.training().max_epochs());
  fill_learning_rate(*job.mutable_learning_rate(), job.training().max_epochs());
  if (job.devices().empty()) {
    for (const engine::DeviceSpec& device : engine::list_devices()) job.add_devices(device.name);
  }
}

}  // namespace arbalest::jobs
