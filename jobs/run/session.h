// Everything that a job needs while it runs: datasets, devices, learners, scheduler, in the order of their dependence.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataflow/input/batch_order.h"
#include "dataflow/input/batch_ring.h"
#include "dataflow/input/dataset.h"
#include "engine/collective.h"
#include "engine/devices.h"
#include "engine/host/pool.h"
#include "jobs/options/job_options.h"
#include "learners/learner_pool.h"
#include "scheduler/scheduler.h"

namespace arbalest::jobs {

// Examples of an evaluation mini-batch. A function of the job alone, so that a saved model is evaluated again as it
// was.
std::int64_t evaluation_batch_size(const JobOptions& job);

class Session {
 public:
  enum class Purpose { kTraining, kEvaluation };  // evaluation reads no training data

  Session(const JobOptions& job, const std::string& data_root, Purpose purpose,
          const engine::DeviceOptions& device_options);

  const dataflow::Dataset& training_data() const { return *training_data_; }
  const dataflow::Dataset& test_data() const { return *test_data_; }
  const dataflow::ShuffledOrder& training_order() const { return *training_order_; }
  dataflow::BatchRing& training_ring() { return *training_ring_; }
  dataflow::BatchRing& test_ring() { return *test_ring_; }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  std::int64_t parameters() const { return pools_.front()->training_plan().parameters().parameters(); }

 private:
  engine::host::Pool host_pool_;
  std::vector<std::unique_ptr<engine::Device>> devices_;
  std::unique_ptr<dataflow::Dataset> training_data_;
  std::unique_ptr<dataflow::Dataset> test_data_;
  std::unique_ptr<dataflow::ShuffledOrder> training_order_;
  std::unique_ptr<dataflow::SequentialOrder> test_order_;
  std::unique_ptr<dataflow::BatchRing> training_ring_;
  std::unique_ptr<dataflow::BatchRing> test_ring_;
  std::unique_ptr<engine::Collective> collective_;
  std::vector<std::unique_ptr<learners::LearnerPool>> pools_;  // by device
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

}  // namespace arbalest::jobs
