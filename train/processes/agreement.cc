#include "train/processes/agreement.h"

#include <bit>

namespace arbalest::jobs {

namespace {

constexpr std::uint64_t kTimeIsOver = 1;
constexpr std::uint64_t kSave = 2;
constexpr std::uint64_t kDiverged = 4;
constexpr std::uint64_t kChange = 8;
constexpr std::uint64_t kUnprepared = 16;
constexpr std::uint64_t kShortage = 32;
constexpr std::uint64_t kWriting = 64;
constexpr std::uint64_t kSkips = 128;
constexpr int kFirstSignal = 8;  // the bit of signal 0

std::uint64_t flags_of(const Requests& requests) {
  std::uint64_t flags = 0;
  if (requests.time_is_over) flags |= kTimeIsOver;
  if (requests.save) flags |= kSave;
  if (requests.has_diverged) flags |= kDiverged;
  if (requests.counts_skips) flags |= kSkips;
  if (requests.has_change) flags |= kChange;
  if (!requests.is_prepared) flags |= kUnprepared;
  if (requests.lacks_memory) flags |= kShortage;
  if (requests.is_writing) flags |= kWriting;
  if (requests.stop_signal != 0) flags |= std::uint64_t{1} << (kFirstSignal + requests.stop_signal);
  return flags;
}

Requests requests_of(std::uint64_t flags) {
  const std::uint64_t signals = flags >> kFirstSignal;
  return {.stop_signal = signals == 0 ? 0 : std::countr_zero(signals),
          .time_is_over = (flags & kTimeIsOver) != 0,
          .save = (flags & kSave) != 0,
          .has_diverged = (flags & kDiverged) != 0,
          .counts_skips = (flags & kSkips) != 0,
          .has_change = (flags & kChange) != 0,
          .is_prepared = (flags & kUnprepared) == 0,
          .lacks_memory = (flags & kShortage) != 0,
          .is_writing = (flags & kWriting) != 0,
          .all_have_written = (flags & kWriting) == 0};
}

}  // namespace

Requests Agreement::after_iteration(const Requests& own, int lag) {
  if (world_.size() == 1) return own;
  pending_.push_back(world_.start_flags(flags_of(own)));
  const auto kept = static_cast<std::size_t>(lag);
  if (pending_.size() <= kept) return {};
  std::uint64_t flags = 0;
  for (; pending_.size() > kept; pending_.pop_front()) flags |= pending_.front().wait();
  return requests_of(flags);
}

void Agreement::forget() {
  for (engine::process::PendingFlags& pending : pending_) pending.wait();
  pending_.clear();
}

Requests Agreement::now(const Requests& own) {
  forget();
  return requests_of(world_.any_of(flags_of(own)));
}

}  // namespace arbalest::jobs
