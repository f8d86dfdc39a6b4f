#include "train/data/dataset_caching.h"

#include <algorithm>

#include "dataflow/input/batches/batch_ring.h"
#include "engine/base/error.h"
#include "messages/text.h"
#include "options/synchronization/job_schemes.h"
#include "scheduler/replicas/ring_slots.h"

namespace arbalest::jobs {

int RingSize::slots(int learners) const {
  const std::int64_t batch_bytes = batch_size * static_cast<std::int64_t>(input.feature_bytes());
  const int wanted =
      is_cached ? scheduler::index_ring_slots(batches_per_pass) : scheduler::image_ring_slots(batch_bytes);
  return steps_per_iteration
             ? scheduler::training_ring_slots(learners, *steps_per_iteration, steps_within_bound, wanted)
             : scheduler::pass_ring_slots(learners, batches_per_pass, wanted);
}

std::size_t RingSize::bytes(int learners) const {
  return dataflow::BatchRing::bytes(is_cached ? nullptr : &input, batch_size, slots(learners));
}

std::int64_t evaluation_batch_size(const JobOptions& job) {
  constexpr std::int64_t kSmallest = 64;  // with fewer examples, a forward pass does not use all cores
  return std::max(job.training.batch_size, kSmallest);
}

bool reestimates_statistics(const JobOptions& job, const learners::LearnerPool& pool) {
  return job.training.reestimates_statistics && pool.training_plan().parameters().statistic_elements() > 0;
}

RingSize training_ring_size(const JobOptions& job, const SplitSize& split) {
  const std::int64_t batch = job.training.batch_size;
  return {split.is_cached,        batch,
          job.data.input,         split.examples / batch,
          longest_iteration(job), sma::most_steps_within_bound(schemes_of(job))};
}

RingSize statistics_ring_size(const JobOptions& job, const SplitSize& training) {
  const std::int64_t batch = job.training.batch_size;
  const std::int64_t batches =
      std::min((std::int64_t{job.training.statistics_examples} + batch - 1) / batch, training.examples / batch);
  return {training.is_cached, batch, job.data.input, batches};
}

RingSize evaluation_ring_size(const JobOptions& job, const SplitSize& split) {
  const std::int64_t batch = evaluation_batch_size(job);
  return {split.is_cached, batch, job.data.input, (split.examples + batch - 1) / batch};
}

bool may_be_cached(const engine::Device& device, std::size_t bytes) {
  return !device.is_cuda() || bytes <= device.free_memory() / 4;
}

std::vector<dataflow::CachedData> cache_dataset(const dataflow::Dataset& dataset,
                                                std::span<const std::unique_ptr<engine::Device>> devices,
                                                std::vector<std::string>& warnings) {
  const auto stored = dataset.stored_bytes();
  if (!stored) return {};
  const std::size_t bytes = stored->bytes();
  std::vector<dataflow::CachedData> cached;
  try {
    for (const auto& device : devices) {
      if (!may_be_cached(*device, bytes)) {
        engine::fail(engine::ErrorKind::kOutOfMemory, "{}: they would take more than a quarter of its free memory",
                     device->name());
      }
      cached.emplace_back(dataset, *device);
    }
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kOutOfMemory) throw;
    warnings.push_back(fmt::format("the {} images of {} stay in host memory, and every mini-batch is copied: {}",
                                   bytes_text(static_cast<std::int64_t>(bytes)), dataset.name(), error.what()));
    return {};
  }
  return cached;
}

}  // namespace arbalest::jobs
