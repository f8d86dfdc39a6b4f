#include "jobs/run/memory_forecast.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/host/topology.h"
#include "jobs/options/learners_reader.h"
#include "jobs/wording/text.h"
#include "scheduler/scheduler.h"
#include "sma/averager.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kHost = "host memory";

std::int64_t signed_bytes(std::size_t bytes) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return std::cmp_less(bytes, kMost) ? static_cast<std::int64_t>(bytes) : kMost;
}

bool exceeds(const MemoryUse& use) { return use.needed > use.available; }

// By device, at any time that is known.
std::vector<int> largest(const JobOptions& job) {
  std::vector<int> counts = job.learners_per_device;
  for (const LearnerStep& step : job.schedule) {
    for (std::size_t d = 0; d < counts.size(); ++d) counts[d] = std::max(counts[d], step.per_device[d]);
  }
  return counts;
}

}  // namespace

AvailableMemory::AvailableMemory(std::span<const std::unique_ptr<engine::Device>> opened)
    : host(signed_bytes(engine::host::available_memory_bytes())) {
  for (const auto& device : opened) devices.push_back(signed_bytes(device->free_memory()));
}

MemoryForecast::MemoryForecast(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
                               const std::optional<SplitSize>& training, const SplitSize& test,
                               AvailableMemory available)
    : job_learners_(largest(job)), may_resize_(may_resize(job)), tuned_(job.tuned), available_(std::move(available)) {
  std::vector<SplitSize> splits = {test};
  rings_.push_back(test_ring_size(job, test));
  if (training) {
    splits.push_back(*training);
    rings_.push_back(training_ring_size(job, *training));
    if (reestimates_statistics(job, *pools.front())) rings_.push_back(statistics_ring_size(job, *training));
  }
  for (const SplitSize& split : splits) {
    dataset_bytes_ += signed_bytes(split.bytes);
  }
  for (const auto& pool : pools) {
    const engine::Device& device = pool->device();
    if (!device.is_cuda()) most_cores_ = std::max(most_cores_, device.cores());
    PerDevice entry{.memory = device.is_cuda() ? device.name() : kHost};
    entry.learner = signed_bytes(pool->learner_bytes());
    entry.averaging = signed_bytes(sma::Averager::device_bytes(device, pool->training_plan().parameters().elements()));
    entry.rest = signed_bytes(pool->shared_bytes());
    for (const SplitSize& split : splits) {
      if (!split.is_resident) continue;
      entry.rest += signed_bytes(dataflow::ResidentData::device_bytes(job.data.input, split.examples, device));
    }
    devices_.push_back(std::move(entry));
  }
  model_bytes_ = signed_bytes(scheduler::Scheduler::host_bytes(pools.front()->training_plan().parameters()));
}

std::vector<MemoryUse> MemoryForecast::uses(std::span<const int> learners_per_device) const {
  const int learners = std::accumulate(learners_per_device.begin(), learners_per_device.end(), 0);
  std::vector<MemoryUse> uses = {{kHost, dataset_bytes_ + model_bytes_, available_.host}};
  for (const RingSize& ring : rings_) uses.front().needed += signed_bytes(ring.bytes(learners));
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const PerDevice& device = devices_[d];
    const std::int64_t bytes =
        device.rest + (learners > 1 || may_resize_ ? device.averaging : 0) + learners_per_device[d] * device.learner;
    if (device.memory == kHost) {
      uses.front().needed += bytes;
    } else {
      uses.push_back({device.memory, bytes, available_.devices[d]});
    }
  }
  return uses;
}

int MemoryForecast::learners_that_fit() const {
  int count = 0;
  while (count < kMostLearners) {
    const std::vector<int> more(devices_.size(), count + 1);
    if (std::ranges::any_of(uses(more), exceeds)) break;
    ++count;
  }
  return count;
}

// On a CPU device learners of another number of threads are others: there are both for a while. Those of more than one
// thread are at most half as many as the cores.
int MemoryForecast::ceiling() const {
  if (!tuned_) return std::ranges::max(job_learners_);
  return std::clamp(learners_that_fit() - most_cores_ / 2, tuned_->min, tuned_->max);
}

std::int64_t MemoryForecast::bytes_of_learners(const MemoryUse& use) const {
  std::int64_t bytes = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (use.name == devices_[d].memory) bytes += job_learners_[d] * devices_[d].learner;
  }
  return bytes;
}

void MemoryForecast::check() const {
  const std::vector<MemoryUse> all = uses(job_learners_);
  const auto use = std::ranges::find_if(all, exceeds);
  if (use == all.end()) return;
  const std::int64_t own = bytes_of_learners(*use);
  const int most = learners_that_fit();
  const std::string remedy =
      most == 0 ? "not even one learner fits: make the model or training.batch_size smaller"
                : fmt::format(
                      "{} on each device would fit (learners.per_device.fixed), or more with a smaller model or "
                      "training.batch_size",
                      counted(most, "learner"));
  throw DoesNotFit(fmt::format("{} would take {} of {} ({} for learners, {} for the rest), but {} are available; {}",
                               counted(std::accumulate(job_learners_.begin(), job_learners_.end(), 0), "learner"),
                               bytes_text(use->needed), use->name, bytes_text(own), bytes_text(use->needed - own),
                               bytes_text(use->available), remedy),
                   most);
}

}  // namespace arbalest::jobs
