#include "engine/process/pending_flags.h"

#include <utility>

#include "engine/process/communication_thread.h"
#include "engine/process/operations/flag_reduction.h"

namespace arbalest::engine::process {

struct PendingFlags::Run {
  explicit Run(CommunicationThread& thread) : communication(thread) {}

  CommunicationThread& communication;
  FlagReduction reduction{0};
  Submission submission;
};

PendingFlags::PendingFlags(std::uint64_t flags) : flags_(flags), run_(nullptr, Release{nullptr}) {}
PendingFlags::PendingFlags(std::unique_ptr<Run, Release> run) : run_(std::move(run)) {}
PendingFlags::PendingFlags(PendingFlags&& other) noexcept = default;
PendingFlags& PendingFlags::operator=(PendingFlags&& other) noexcept = default;
PendingFlags::~PendingFlags() = default;

bool PendingFlags::is_done() { return run_ == nullptr || run_->communication.is_done(run_->submission); }

std::uint64_t PendingFlags::wait() {
  if (run_ == nullptr) return flags_;
  run_->communication.wait(run_->submission);
  return run_->reduction.result();
}

// The communication thread uses the operation until it is done. Every later operation throws an error again.
void PendingFlags::Release::operator()(Run* run) const {
  std::unique_ptr<Run> released(run);
  try {
    released->communication.wait(released->submission);
  } catch (const Error&) {
  }
  const std::lock_guard lock(pool->mutex_);
  pool->idle_.push_back(std::move(released));
}

FlagPool::FlagPool(CommunicationThread* communication) : communication_(communication) {}
FlagPool::~FlagPool() = default;

PendingFlags FlagPool::start(std::uint64_t flags, int channel) {
  if (communication_ == nullptr) return PendingFlags(flags);
  std::unique_ptr<PendingFlags::Run> idle;
  {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) {
      idle_.reserve(runs_ + 1);
      idle = std::make_unique<PendingFlags::Run>(*communication_);
      ++runs_;
    } else {
      idle = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  idle->reduction = FlagReduction(flags);
  idle->submission = {.operation = &idle->reduction, .channel = channel};
  communication_->start(idle->submission);
  return PendingFlags(std::unique_ptr<PendingFlags::Run, PendingFlags::Release>(idle.release(), {this}));
}

}  // namespace arbalest::engine::process
