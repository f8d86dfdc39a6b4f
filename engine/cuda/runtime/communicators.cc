#include "engine/cuda/runtime/communicators.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <memory>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/process/all_gather.h"

namespace arbalest::engine::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kYields = 200;  // polls before a waiting host thread sleeps
constexpr auto kNap = std::chrono::microseconds(20);
constexpr auto kLongestAbort = std::chrono::seconds(5);

// Rank 0 makes the id by which the ranks find each other.
ncclUniqueId share_id(process::World& world) {
  ncclUniqueId id{};
  if (world.rank() == 0) ARBALEST_CUDA(ncclGetUniqueId(&id));
  std::string bytes(id.internal, sizeof id.internal);
  world.broadcast(bytes);
  ARBALEST_CHECK(bytes.size() == sizeof id.internal);
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

// Results by which NCCL says that it has lost another process. They do not name it.
bool is_lost_connection(ncclResult_t result) { return result == ncclRemoteError || result == ncclSystemError; }

}  // namespace

NcclGroup::NcclGroup() { ARBALEST_CUDA(ncclGroupStart()); }

NcclGroup::~NcclGroup() {
  if (open_) static_cast<void>(ncclGroupEnd());  // the exception already reports the cause
}

void NcclGroup::issue() {
  open_ = false;
  ARBALEST_CUDA(ncclGroupEnd());
}

void rest(int polls) {
  if (polls < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

NcclCommunicators::NcclCommunicators(const std::vector<int>& ordinals, process::World& world)
    : world_(world), communicators_(ordinals.size()) {
  const std::vector<double> counts = process::all_gather(world_, static_cast<double>(ordinals.size()));
  all_ranks_ = static_cast<int>(std::reduce(counts.begin(), counts.end()));
  first_rank_ = static_cast<int>(std::reduce(counts.begin(), counts.begin() + world_.rank()));
  try {
    const ncclUniqueId id = share_id(world_);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = spans_processes() ? 0 : 1;  // a single process has no peers that die
    NcclGroup group;
    for (std::size_t i = 0; i < ordinals.size(); ++i) {
      ARBALEST_CUDA(cudaSetDevice(ordinals[i]));
      ARBALEST_CUDA(
          ncclCommInitRankConfig(&communicators_[i], all_ranks_, id, first_rank_ + static_cast<int>(i), &config));
    }
    group.issue();
  } catch (const Error& error) {
    give_up(error);
    throw;
  }
}

NcclCommunicators::~NcclCommunicators() {
  bool is_failing = std::uncaught_exceptions() > 0;
  try {
    world_.check();
  } catch (const Error&) {
    is_failing = true;  // the thrower of the exception has reported it
  }
  // ncclCommDestroy waits until the ranks on the same machine call it, too. After an error they may not.
  if (is_failing && spans_processes()) abort();
  for (ncclComm_t communicator : communicators_) static_cast<void>(ncclCommDestroy(communicator));
}

void NcclCommunicators::wait_until_started(double seconds, const Work& work) const {
  const Clock::time_point begin = Clock::now();
  for (int polls = 0; !have_started(work); ++polls) {
    world_.check();
    if (std::chrono::duration<double>(Clock::now() - begin).count() > seconds) {
      fail(ErrorKind::kPeer,
           "NCCL has not connected the {} GPUs of the job within {:g} s; if the hosts have several networks, name the "
           "one that connects them in NCCL_SOCKET_IFNAME, and see what NCCL_DEBUG=INFO prints",
           all_ranks_, seconds);
    }
    rest(polls);
  }
}

bool NcclCommunicators::have_started(const Work& work) const {
  bool all_have = true;
  for (std::size_t device = 0; device < communicators_.size(); ++device) {
    ncclResult_t state = ncclSuccess;
    ARBALEST_CUDA(ncclCommGetAsyncError(communicators_[device], &state));
    if (state == ncclInProgress) all_have = false;
    if (state == ncclInProgress || state == ncclSuccess) continue;
    const std::string what = work ? fmt::format("{} fails", work(device))
                                  : fmt::format("NCCL cannot connect the {} GPUs of the job", all_ranks_);
    const std::string text = fmt::format("{}: {}", what, ncclGetErrorString(state));
    if (is_lost_connection(state)) throw LostConnection(ErrorKind::kPeer, text);
    fail(ErrorKind::kPeer, "{}", text);
  }
  return all_have;
}

void NcclCommunicators::give_up(const Error& error) {
  abort();
  // The watchdog names the process that NCCL has lost, but it may take its whole timeout, and the news some time.
  constexpr double kNewsSeconds = 5.0;
  const bool has_lost_connection = dynamic_cast<const LostConnection*>(&error) != nullptr;
  world_.check(has_lost_connection ? world_.peer_timeout() + kNewsSeconds : 0.0);
}

// ncclCommAbort may never return when a process of the same machine has died. The World's communication thread then
// ends this process in spite of that.
void NcclCommunicators::abort() noexcept {
  if (communicators_.empty()) return;
  const auto is_done = std::make_shared<std::promise<void>>();
  std::future<void> done = is_done->get_future();
  // NCCL may still write to the vector while it connects, so the thread keeps it.
  const auto work = [is_done, communicators = std::exchange(communicators_, {})] {
    for (ncclComm_t communicator : communicators) {
      // It frees the communicator even if it returns an error.
      if (communicator != nullptr) static_cast<void>(ncclCommAbort(communicator));
    }
    is_done->set_value();
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error&) {
    return work();
  }
  done.wait_for(kLongestAbort);
}

}  // namespace arbalest::engine::cuda
