// Owns everything that a running job needs, in order of dependence: datasets, devices, learners, scheduler.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/batches/cached_data.h"
#include "dataflow/input/dataset.h"
#include "engine/backends/devices.h"
#include "engine/collective.h"
#include "engine/host/memory_budget.h"
#include "engine/host/pool.h"
#include "engine/process/world.h"
#include "learners/learner_pool.h"
#include "options/job_options.h"
#include "scheduler/scheduler.h"
#include "train/data/dataset_caching.h"

namespace arbalest::jobs {

struct AvailableMemory;  // memory_estimate.h

// Connects the devices of a job that is split over the devices of all processes. Returns the place of each device; none
// if the job is not split. A call of World's operations.
std::vector<engine::ExchangeMember> connect_split(const JobOptions& job,
                                                  std::span<const std::unique_ptr<engine::Device>> devices,
                                                  engine::process::World& world);

// Makes a pool for each of the job's devices, whose places are those of connect_split(). All have the layout of
// parameters that is given, or else the one that the first device prefers. JobOptions::chooses_team: teams have as many
// learners as a device, or one if libraries compute layers learner by learner. The data, by device or none, must
// outlive the pools.
std::vector<std::unique_ptr<learners::LearnerPool>> make_pools(
    const JobOptions& job, std::span<const std::unique_ptr<engine::Device>> devices,
    std::span<const engine::ExchangeMember> places, const std::vector<dataflow::CachedData>& training_data = {},
    const std::vector<dataflow::CachedData>& evaluation_data = {}, const dataflow::ParameterLayout* layout = nullptr);

class Session {
 public:
  enum class Input {
    kResident,  // steps gather from datasets on the devices, if those fit
    kRing       // mini-batches are always copied through rings
  };

  // The job names its precision (settled_precision.h). Throws DoesNotFit, and kOutOfMemory if an allocation fails
  // although the estimate fits. `world`: the processes of the run, which all open a session; null: this process alone.
  // The job says how the devices choose kernels; a run with recorded choices passes them in `device_options`.
  Session(const JobOptions& job, const std::string& data_root, const engine::DeviceOptions& device_options,
          Input input = Input::kResident, engine::process::World* world = nullptr);

  engine::Device& device() const { return *devices_.front(); }  // the first of the job
  const dataflow::Dataset& training_data() const { return *training_data_; }
  // The test set followed by the validation set, if there is one.
  const dataflow::Dataset& evaluation_data() const { return *evaluation_data_; }
  std::int64_t test_examples() const noexcept { return test_examples_; }
  std::int64_t validation_examples() const noexcept { return evaluation_data_->size() - test_examples_; }
  const dataflow::ShuffledOrder& training_order() const { return *training_order_; }
  dataflow::BatchRing& training_ring() { return *training_ring_; }
  dataflow::BatchRing& test_ring() { return *test_ring_; }
  dataflow::BatchRing* validation_ring() { return validation_ring_.get(); }  // null if there is no validation set
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  dataflow::BatchRing* statistics_ring() { return statistics_ring_.get(); }  // null: statistics are not re-estimated
  // prepare() prepares another number of learners, by device (LearnerPool::prepare), and may run on a thread of its
  // own. resize() switches to it once the scheduler is drained. Idle learners stay until the next prepare(), which
  // frees those it does not need before it makes any, or until release_idle(), which may run wherever prepare() may.
  // `team`: the largest size of teams from then on (LearnerPool::set_team); 0: as it is. change_teams() keeps the
  // number of learners, and training goes on as without it (Scheduler::change_teams).
  void prepare(std::span<const int> learners_per_device, int team = 0);
  void resize(std::span<const int> learners_per_device, int team = 0);
  void change_teams(int team);
  // Switches to another scheme, and prepares its learners here (Scheduler::switch_to); there may be no more than
  // before.
  void switch_to(const SynchronizationSwitch& to);
  // Goes on from a saved state (Scheduler::restore) with this number of learners, by device, and this size of teams,
  // which it prepares.
  void restore(const scheduler::TrainingState& state, const sma::Options& synchronization,
               scheduler::RateScaling scaling, std::span<const int> learners_per_device, int team = 0);
  void release_idle();
  // From the next prepare() on, learners have at most `most` threads; 0: as many as the cores give.
  void limit_threads(int most);
  // Memory of their devices that the present learners take.
  std::int64_t learner_bytes() const;
  // The most learners that a team of this process has now; 1: they have streams of their own.
  int largest_team() const;
  // The largest number of learners that each device may get; memory allows no more.
  int learner_ceiling() const noexcept { return learner_ceiling_; }
  // MemoryEstimate::most_at_once() of a job that tunes the size of teams; 0: it does not, or a device takes none.
  int learners_at_once() const noexcept { return learners_at_once_; }

  // Warnings for the user from opening the session.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  // How often an unreadable example was left out of its mini-batch.
  std::int64_t skipped_examples() const;
  // Error of the first such example, of the training set if it has one; "" if there is none.
  std::string first_skipped() const;
  // What reading the examples has shown so far that the user should know.
  std::vector<std::string> reading_warnings() const;
  // The kernels of the run's GPUs: those of its first device, which the others took.
  std::vector<engine::KernelChoice> kernel_choices() const { return device().kernel_choices(); }
  // The job's devices, in its order.
  std::span<const std::unique_ptr<engine::Device>> devices() const noexcept { return devices_; }
  std::int64_t trained_parameters() const { return pools_.front()->training_plan().parameters().trained_parameters(); }
  std::int64_t parameters() const { return pools_.front()->training_plan().parameters().parameters(); }

 private:
  // Makes the pools, with one layout of parameters and one choice of kernels in all processes. A call of World's
  // operations.
  void make_shared_pools(const JobOptions& job, std::span<const engine::ExchangeMember> places,
                         engine::process::World& processes);
  // Finds out how many learners fit, and makes the rings.
  void fit(const JobOptions& job, const AvailableMemory& available, const engine::process::World& processes);
  void load_data(const JobOptions& job, const std::string& data_root, Input input,
                 const engine::host::MemoryBudget& budget);
  void load_sets(const JobOptions& job, const std::string& data_root, const engine::host::MemoryBudget& budget);
  void add_warnings(const JobOptions& job);
  SplitSizes split_sizes() const;
  void make_rings(const JobOptions& job, const SplitSizes& sizes, int learners);
  void make_statistics_ring(const JobOptions& job, const SplitSize& training, int learners);
  std::unique_ptr<dataflow::BatchRing> make_ring(const dataflow::Dataset& data, dataflow::BatchOrder& order,
                                                 const RingSize& size, int learners);

  std::vector<std::string> warnings_;
  engine::process::World alone_;
  engine::host::Pool host_pool_;
  std::vector<std::unique_ptr<engine::Device>> devices_;
  std::unique_ptr<dataflow::Dataset> training_data_;
  std::unique_ptr<dataflow::Dataset> evaluation_data_;
  std::int64_t test_examples_ = 0;                            // the first examples of evaluation_data_
  std::vector<dataflow::CachedData> cached_training_data_;    // by device, or none
  std::vector<dataflow::CachedData> cached_evaluation_data_;  // by device, or none
  std::unique_ptr<dataflow::ShuffledOrder> training_order_;
  std::unique_ptr<dataflow::SequentialOrder> test_order_;
  std::unique_ptr<dataflow::SequentialOrder> validation_order_;
  std::unique_ptr<dataflow::ShuffledOrder> statistics_examples_;  // the training order once more, with a position of
                                                                  // its own
  std::unique_ptr<dataflow::FirstBatches> statistics_order_;
  std::unique_ptr<dataflow::BatchRing> training_ring_;
  std::unique_ptr<dataflow::BatchRing> statistics_ring_;  // null: statistics are not re-estimated
  std::unique_ptr<dataflow::BatchRing> test_ring_;
  std::unique_ptr<dataflow::BatchRing> validation_ring_;
  std::unique_ptr<engine::Collective> collective_;
  std::vector<std::unique_ptr<learners::LearnerPool>> pools_;  // by device
  int learner_ceiling_ = 0;
  int learners_at_once_ = 0;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

// Opens a session for `job`. If memory does not suffice for the default number of learners, `job` gets as many as fit,
// and a warning. If it does not suffice for the bound of a tuned job, `job` gets a lower bound. `job` gets the
// session's warnings, too. Throws DoesNotFit, or the error of an allocation, if the user has set the number (for a
// tuned job: the minimum), if not even one learner fits, or if there are several processes.
std::unique_ptr<Session> open_session(JobOptions& job, const std::string& data_root,
                                      const engine::DeviceOptions& device_options,
                                      Session::Input input = Session::Input::kResident,
                                      engine::process::World* world = nullptr);

}  // namespace arbalest::jobs
