#include "jobs/run/session.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "dataflow/input/digits.h"
#include "dataflow/input/idx.h"
#include "engine/error.h"
#include "engine/host/topology.h"
#include "jobs/options/size_check.h"

namespace arbalest::jobs {

namespace {

// A split of the job's dataset.
std::unique_ptr<dataflow::Dataset> load_dataset(const JobOptions& job, const std::string& data_root,
                                                engine::host::Pool& pool, dataflow::Split split) {
  const DataOptions& data = job.data;
  switch (data.kind) {
    case DataOptions::Kind::kDigits:
      return dataflow::load_digits(split, data.normalization, pool);
    case DataOptions::Kind::kMnist: {
      const std::filesystem::path directory = std::filesystem::path(data_root) / data.directory;
      return dataflow::load_idx({data.directory, directory, data.input, data.normalization}, split);
    }
  }
  engine::fail(engine::ErrorKind::kInternal, "unknown kind of data");
}

}  // namespace

std::int64_t evaluation_batch_size(const JobOptions& job) {
  constexpr std::int64_t kSmallest = 64;  // below, the forward pass alone wastes cores
  return std::max(job.training.batch_size, kSmallest);
}

Session::Session(const JobOptions& job, const std::string& data_root, Purpose purpose,
                 const engine::DeviceOptions& device_options)
    : host_pool_(engine::host::usable_cores()) {
  for (const engine::DeviceSpec& spec : job.devices) devices_.push_back(engine::open_device(spec, device_options));
  const std::vector<int>& counts = job.learners_per_device;
  const int learners = std::accumulate(counts.begin(), counts.end(), 0);
  const int period = job.synchronization.period;

  const auto batch_bytes = [&](std::int64_t batch) {
    return batch * job.data.input.image.elements() * static_cast<std::int64_t>(sizeof(float));
  };
  test_data_ = load_dataset(job, data_root, host_pool_, dataflow::Split::kTest);
  test_order_ = std::make_unique<dataflow::SequentialOrder>(test_data_->size(), evaluation_batch_size(job));
  test_ring_ = std::make_unique<dataflow::BatchRing>(
      *test_data_, *test_order_, *devices_.front(), host_pool_,
      scheduler::ring_slots(learners, 1, batch_bytes(evaluation_batch_size(job))));
  std::int64_t batches_per_epoch = 1;
  if (purpose == Purpose::kTraining) {
    training_data_ = load_dataset(job, data_root, host_pool_, dataflow::Split::kTrain);
    training_order_ =
        std::make_unique<dataflow::ShuffledOrder>(training_data_->size(), job.training.batch_size, job.training.seed);
    training_ring_ = std::make_unique<dataflow::BatchRing>(
        *training_data_, *training_order_, *devices_.front(), host_pool_,
        scheduler::ring_slots(learners, period, batch_bytes(job.training.batch_size)));
    batches_per_epoch = training_order_->batches_per_epoch();
    // The files may hold another number of examples than the dataset is known to have.
    const std::string problem = check_round(learners, period, batches_per_epoch);
    if (!problem.empty()) engine::fail(engine::ErrorKind::kInvalidJob, "{}", problem);
  }

  int first_number = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const dataflow::ParameterLayout* layout = d == 0 ? nullptr : &pools_.front()->training_plan().parameters();
    pools_.push_back(
        std::make_unique<learners::LearnerPool>(job.graph, *devices_[d],
                                                learners::PoolOptions{.learners = counts[d],
                                                                      .first_number = first_number,
                                                                      .batch = job.training.batch_size,
                                                                      .evaluation_batch = evaluation_batch_size(job),
                                                                      .result_slots = scheduler::result_slots(period),
                                                                      .momentum = job.optimizer.momentum,
                                                                      .weight_decay = job.optimizer.weight_decay},
                                                layout));
    first_number += counts[d];
  }
  collective_ = engine::make_collective(devices_);
  scheduler_ = std::make_unique<scheduler::Scheduler>(scheduler::Options{.learning_rate = job.learning_rate,
                                                                         .averaging = job.synchronization,
                                                                         .seed = job.training.seed,
                                                                         .batches_per_epoch = batches_per_epoch},
                                                      pools_, *collective_);
}

}  // namespace arbalest::jobs
