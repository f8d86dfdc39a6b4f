#include "train/session/memory_estimate.h"

#include <algorithm>
#include <utility>

#include "checkpoint/transfer/file_transfer.h"
#include "dataflow/parameter_part.h"
#include "engine/host/topology.h"
#include "messages/signed_bytes.h"
#include "messages/text.h"
#include "options/readers/learners_reader.h"
#include "options/synchronization/job_schemes.h"
#include "scheduler/scheduler.h"
#include "scheduler/shards/sharded_pushes.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kHost = "host memory";

bool exceeds(const MemoryUse& use) { return use.needed > use.available; }

// The largest known number of active learners at any time, by device.
std::vector<int> largest(const JobOptions& job) {
  std::vector<int> counts = job.learners_per_device;
  for (const LearnerStep& step : job.schedule) {
    for (std::size_t d = 0; d < counts.size(); ++d) counts[d] = std::max(counts[d], step.per_device[d]);
  }
  return counts;
}

// The largest known number of allocated learners at any time, by device: where the threads of each learner or the size
// of teams change, the learners before and after are different ones and coexist.
std::vector<int> coexisting(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools) {
  std::vector<int> counts = largest(job);
  for (std::size_t d = 0; d < counts.size(); ++d) {
    int present = job.learners_per_device[d];
    const auto change = [&](int next) {
      if (!pools[d]->share_learners(present, next)) counts[d] = std::max(counts[d], present + next);
      present = next;
    };
    for (const LearnerStep& step : job.schedule) change(step.per_device[d]);
    for (const SynchronizationSwitch& to : job.switches) {
      if (!to.learners_per_device.empty()) change(to.learners_per_device[d]);
    }
  }
  return counts;
}

}  // namespace

AvailableMemory::AvailableMemory(std::span<const std::unique_ptr<engine::Device>> opened, int processes)
    : host(signed_bytes(engine::host::available_memory_bytes()) / processes) {
  for (const auto& device : opened) {
    static_cast<void>(device->stream_bytes({}));  // a GPU creates handles of its own to find this out
    const std::int64_t bytes = signed_bytes(device->free_memory());
    devices.push_back(device->is_cuda() ? bytes : bytes / processes);
  }
}

MemoryEstimate::MemoryEstimate(const JobOptions& job, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
                               const SplitSizes& sizes, AvailableMemory available, int rank, int processes)
    : job_learners_(coexisting(job, pools)),
      most_learners_(largest(job)),
      ring_learners_(jobs::most_learners(job)),
      needs_{.schemes = schemes_of(job),
             .most_learners = may_resize(job) || job.learners_elsewhere > 0 ? most_learners_of_all(job) : 1,
             .may_resize = may_resize(job),
             .state_slots = pools.front()->state_slots(),
             .rule = job.optimizer.rule,
             .measures_gradients = measures_gradients(job),
             .compares_copies = job.compare_rounds > 0,
             .process = rank,
             .processes = processes},
      sizes_{pools.front()->training_plan().parameters().moving_elements(),
             pools.front()->training_plan().parameters().statistic_elements(),
             pools.front()->training_plan().parameters().frozen_elements(),
             pools.front()->training_plan().parameters().part_ranges()},
      tuned_(job.tuned),
      limit_(job.device_memory_bytes),
      is_alone_(processes == 1),
      available_(std::move(available)) {
  std::vector<SplitSize> splits{sizes.test};
  if (sizes.validation) splits.push_back(*sizes.validation);
  for (const SplitSize& split : splits) rings_.push_back(evaluation_ring_size(job, split));
  splits.push_back(sizes.training);
  rings_.push_back(training_ring_size(job, sizes.training));
  if (reestimates_statistics(job, *pools.front())) rings_.push_back(statistics_ring_size(job, sizes.training));
  for (const SplitSize& split : splits) {
    dataset_bytes_ += signed_bytes(split.bytes);
  }
  for (const auto& pool : pools) {
    const engine::Device& device = pool->device();
    PerDevice entry{.memory = device.is_cuda() ? device.name() : kHost};
    if (!device.is_cuda()) entry.cores = device.cores();
    entry.pool = pool.get();
    entry.teams_vary = pool->most_team() > 1 && (may_resize(job) || job_learners_ != job.learners_per_device);
    entry.limited = fmt::format("'{}' under device_memory_mib", device.name());
    entry.rest = signed_bytes(pool->shared_bytes());
    for (const SplitSize& split : splits) {
      if (!split.is_cached) continue;
      entry.rest += signed_bytes(dataflow::CachedData::device_bytes(job.data.input, split.examples, device));
    }
    devices_.push_back(std::move(entry));
    opened_.push_back(&pool->device());
  }
  const dataflow::ParameterLayout& parameters = pools.front()->training_plan().parameters();
  model_bytes_ = signed_bytes(scheduler::Scheduler::host_bytes(parameters));
  if (const engine::ExchangeGroup* exchange = pools.front()->exchange()) {
    is_split_ = true;
    exchange_bytes_ = signed_bytes(exchange->host_bytes() + dataflow::gather_bytes(parameters));
  }
  saves_checkpoints_ = job.checkpoint.are_on();
  if (tuned_) {
    most_learners_.assign(devices_.size(), find_ceiling());
    ring_learners_ = total(most_learners_);
  }
}

std::int64_t MemoryEstimate::PerDevice::bytes_of_each(int learners) const {
  return signed_bytes(pool->learner_bytes(teams_vary ? 1 : pool->team_for(learners)));
}

std::vector<MemoryUse> MemoryEstimate::uses(std::span<const int> learners_per_device) const {
  return uses(learners_per_device, ring_learners_);
}

std::vector<MemoryUse> MemoryEstimate::uses(std::span<const int> learners_per_device, int ring_learners) const {
  const int learners = total(learners_per_device);
  std::vector<MemoryUse> uses = {{kHost, dataset_bytes_ + model_bytes_ + exchange_bytes_, available_.host}};
  if (saves_checkpoints_) {
    // A process that does not lead puts one learner together for its file.
    const bool leads = needs_.process == 0;
    const int copied = leads ? learners : learners + 1;
    uses.front().needed += model_bytes_ * scheduler::Scheduler::state_vectors(copied, needs_.state_slots, leads);
    if (!is_alone_) uses.front().needed += 2 * signed_bytes(kTransferBytes);  // a piece, and its copy for the library
  }
  if (!is_alone_ && sma::Synchronizer::has_server(needs_)) {
    uses.front().needed += signed_bytes(scheduler::ShardedPushes::host_bytes(learners, sizes_));
  }
  for (const RingSize& ring : rings_) uses.front().needed += signed_bytes(ring.bytes(ring_learners));
  sma::SynchronizerNeeds needs = needs_;
  needs.most_learners = std::max(needs.most_learners, learners);
  const std::vector<std::size_t> shared = sma::Synchronizer::device_bytes(needs, opened_, sizes_);
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const PerDevice& device = devices_[d];
    const std::int64_t bytes =
        device.rest + signed_bytes(shared[d]) + learners_per_device[d] * device.bytes_of_each(learners_per_device[d]);
    if (device.memory == kHost) {
      uses.front().needed += bytes;
      uses.front().learners += learners_per_device[d];
    } else {
      uses.push_back({device.memory, bytes, available_.devices[d], learners_per_device[d]});
    }
    if (limit_) uses.push_back({device.limited, bytes, *limit_, learners_per_device[d], true});
  }
  return uses;
}

int MemoryEstimate::learners_that_fit() const {
  for (int count = is_split_ ? 1 : kMostLearners; count > 0; --count) {
    const std::vector<int> each(devices_.size(), count);
    if (std::ranges::none_of(uses(each, total(each)), exceeds)) return count;
  }
  return 0;
}

// Memory use at the worst moment. On a CPU device a different thread count needs new learners, and on a GPU another
// size of teams does, so those of the present number and of the one before or after coexist. Learners with more than
// one thread are at most half as many as the cores.
std::vector<MemoryUse> MemoryEstimate::uses_while_tuned(int ceiling) const {
  std::vector<int> learners;
  for (const PerDevice& device : devices_) {
    const int others = device.teams_vary ? ceiling - 1 : std::min(device.cores / 2, ceiling - 1);
    learners.push_back(ceiling + others);
  }
  return uses(learners, ceiling * static_cast<int>(devices_.size()));
}

int MemoryEstimate::find_ceiling() const {
  int ceiling = tuned_->min;
  while (ceiling < tuned_->max && std::ranges::none_of(uses_while_tuned(ceiling + 1), exceeds)) ++ceiling;
  return ceiling;
}

int MemoryEstimate::most_at_once() const {
  const int most = std::ranges::max(most_learners_);
  int held = most;
  const auto fits = [&](int learners) {
    return std::ranges::none_of(uses(std::vector<int>(devices_.size(), learners), ring_learners_), exceeds);
  };
  while (held < 2 * most && fits(held + 1)) ++held;
  return held;
}

std::string MemoryEstimate::lowered_bound() const {
  if (!tuned_ || most_learners_.front() == tuned_->max) return "";
  const std::vector<MemoryUse> more = uses_while_tuned(most_learners_.front() + 1);
  const auto use = std::ranges::find_if(more, exceeds);
  return fmt::format(
      "learners.per_device.auto: at most {} on each device, where the job allows {}: with one more the search could "
      "take {} of {}, but {} are available",
      counted(most_learners_.front(), "learner"), tuned_->max, bytes_text(use->needed), use->name,
      bytes_text(use->available));
}

std::int64_t MemoryEstimate::bytes_of_learners(const MemoryUse& use, std::span<const int> learners_per_device) const {
  std::int64_t bytes = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (use.name == devices_[d].memory || use.name == devices_[d].limited)
      bytes += learners_per_device[d] * devices_[d].bytes_of_each(learners_per_device[d]);
  }
  return bytes;
}

void MemoryEstimate::check() const {
  const std::vector<MemoryUse> all = uses(job_learners_);
  const auto use = std::ranges::find_if(all, exceeds);
  if (use == all.end()) return;
  const std::int64_t own = bytes_of_learners(*use, job_learners_);
  const int most = learners_that_fit();
  const std::string change =
      job_learners_ == most_learners_ || tuned_ ? "" : " (while their number changes, old and new learners coexist)";
  throw DoesNotFit(
      fmt::format("{}{} would take {} of {} ({} for the learners, {} for the rest), but only {} are available; {}",
                  counted(use->learners > 0 ? use->learners : total(job_learners_), "learner"), change,
                  bytes_text(use->needed), use->name, bytes_text(own), bytes_text(use->needed - own),
                  bytes_text(use->available), remedy(*use, most)),
      most);
}

std::string MemoryEstimate::remedy(const MemoryUse& use, int most) const {
  const std::string limit = use.is_limit ? "raise device_memory_mib, " : "";
  std::string smaller = limit + "make the model or training.batch_size smaller";
  // Devices that share the host's memory also share what they divide.
  if (use.name != kHost) {
    smaller += is_split_ ? ", or divide the model more: add `split` to further dense layers, or name more devices"
                         : ", or divide dense layers over several devices (`split`)";
  }
  if (is_split_) return smaller;
  const bool waits = use.name == kHost && sma::most_steps_within_bound(needs_.schemes) >
                                              scheduler::needed_ring_slots(1, sma::longest_iteration(needs_.schemes));
  const char* const apart = waits ? ", or lower staleness or push_every of async_sgd: mini-batches wait in this memory "
                                    "until the slowest learner follows"
                                  : "";
  if (most == 0) return "not even one learner fits: " + smaller + apart;
  return fmt::format("{}{} on each device would fit ({}), or more with a smaller model or training.batch_size{}",
                     use.is_limit ? "raise device_memory_mib; as it is, " : "", counted(most, "learner"),
                     tuned_ ? "learners.per_device.auto.min" : "learners.per_device.fixed", apart);
}

}  // namespace arbalest::jobs
