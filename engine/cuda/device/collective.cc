#include "engine/cuda/device/collective.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>

#include "engine/cuda/device/stream.h"
#include "engine/error.h"
#include "engine/process/all_gather.h"

namespace arbalest::engine::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kYields = 200;  // polls before a waiting host thread sleeps
constexpr auto kNap = std::chrono::microseconds(20);
constexpr auto kLongestAbort = std::chrono::seconds(5);

// Between ncclGroupStart and ncclGroupEnd, NCCL collects calls and issues them together. If one fails, it issues none.
class Group {
 public:
  Group() { ARBALEST_CUDA(ncclGroupStart()); }
  ~Group() {
    if (open_) static_cast<void>(ncclGroupEnd());  // the exception already reports the cause
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void issue() {
    open_ = false;
    ARBALEST_CUDA(ncclGroupEnd());
  }

 private:
  bool open_ = true;
};

// Rests between two polls, longer after many of them.
void rest(int polls) {
  if (polls < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
}

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

class LostConnection final : public Error {
 public:
  using Error::Error;
};

}  // namespace

template <typename Step>
void NcclCollective::guarded(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    give_up(error);
    throw;
  }
}

NcclCollective::NcclCollective(const std::vector<int>& ordinals, process::World& world, double connect_seconds)
    : world_(world), ranks_(ordinals.size()), communicators_(ordinals.size()) {
  guarded([&] {
    create_communicators(ordinals);
    wait_until_started(connect_seconds);
  });
}

NcclCollective::~NcclCollective() {
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

void NcclCollective::create_communicators(const std::vector<int>& ordinals) {
  const std::vector<double> counts = process::all_gather(world_, static_cast<double>(ordinals.size()));
  all_ranks_ = static_cast<int>(std::reduce(counts.begin(), counts.end()));
  const int first = static_cast<int>(std::reduce(counts.begin(), counts.begin() + world_.rank()));
  const ncclUniqueId id = share_id(world_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = spans_processes() ? 0 : 1;  // a single process has no peers that die
  Group group;
  for (std::size_t i = 0; i < ordinals.size(); ++i) {
    ARBALEST_CUDA(cudaSetDevice(ordinals[i]));
    ARBALEST_CUDA(ncclCommInitRankConfig(&communicators_[i], all_ranks_, id, first + static_cast<int>(i), &config));
  }
  group.issue();
}

void NcclCollective::wait_until_started(double seconds) {
  const Clock::time_point begin = Clock::now();
  for (int polls = 0; !have_started(); ++polls) {
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

bool NcclCollective::have_started() const {
  bool all_have = true;
  for (std::size_t rank = 0; rank < communicators_.size(); ++rank) {
    ncclResult_t state = ncclSuccess;
    ARBALEST_CUDA(ncclCommGetAsyncError(communicators_[rank], &state));
    if (state == ncclInProgress) all_have = false;
    if (state == ncclInProgress || state == ncclSuccess) continue;
    const std::string what = streams_.empty() ? fmt::format("NCCL cannot connect the {} GPUs of the job", all_ranks_)
                                              : fmt::format("the all-reduce of {} fails", streams_[rank]->name());
    const std::string text = fmt::format("{}: {}", what, ncclGetErrorString(state));
    if (is_lost_connection(state)) throw LostConnection(ErrorKind::kPeer, text);
    fail(ErrorKind::kPeer, "{}", text);
  }
  return all_have;
}

void NcclCollective::all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) {
  ARBALEST_CHECK(parts.size() == ranks_ && !communicators_.empty());
  streams_.clear();
  for (const CollectivePart& part : parts) streams_.push_back(&as_cuda(*part.stream));
  try {
    issue_all_reduce(parts, elements, label);
    wait_until_started(std::numeric_limits<double>::infinity());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kOutOfMemory) throw;
    check_all();  // NCCL's "unhandled cuda error" usually means that a GPU has failed
    give_up(error);
    throw;
  }
}

void NcclCollective::issue_all_reduce(std::span<const CollectivePart> parts, std::size_t elements, const char* label) {
  Group group;  // one host thread enqueues for all ranks; an ungrouped call would block it
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    float* const values = parts[rank].values;
    as_cuda(*parts[rank].stream).submit(label, [&](const StreamContext& context) {
      ARBALEST_CUDA(
          ncclAllReduce(values, values, elements, ncclFloat32, ncclSum, communicators_[rank], context.stream));
    });
  }
  group.issue();
}

void NcclCollective::wait(const Event& event) {
  for (int polls = 0; !event.is_complete(); ++polls) {
    check_all();
    rest(polls);
  }
  guarded([&] { event.synchronize(); });
}

void NcclCollective::check_all() {
  guarded([this] {
    for (const CudaStream* stream : streams_) stream->check();
    static_cast<void>(have_started());
    world_.check();
  });
}

void NcclCollective::give_up(const Error& error) {
  abort();
  // The watchdog names the process that NCCL has lost, but it may take its whole timeout, and the news some time.
  constexpr double kNewsSeconds = 5.0;
  const bool has_lost_connection = dynamic_cast<const LostConnection*>(&error) != nullptr;
  world_.check(has_lost_connection ? world_.peer_timeout() + kNewsSeconds : 0.0);
}

// ncclCommAbort may never return when a process of the same machine has died. The World's communication thread then
// ends this process in spite of that.
void NcclCollective::abort() noexcept {
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
