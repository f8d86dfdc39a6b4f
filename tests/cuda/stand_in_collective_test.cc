// Tests the stand-in's NCCL.
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/cuda/stand_in_rig.h"

namespace arbalest::tests {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 4;

struct Ranks {
  explicit Ranks(std::uint64_t seed = 1, bool is_blocking = true) {
    cuda_stand_in::reset({.devices = kRanks}, seed);
    ncclUniqueId id{};
    REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      must(cudaSetDevice(rank));
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = is_blocking ? 1 : 0;
      REQUIRE(ncclCommInitRankConfig(&communicators[static_cast<std::size_t>(rank)], kRanks, id, rank, &config) ==
              ncclSuccess);
    }
    REQUIRE(ncclGroupEnd() == (is_blocking ? ncclSuccess : ncclInProgress));
    if (!is_blocking) poll();
    for (int rank = 0; rank < kRanks; ++rank) {
      must(cudaSetDevice(rank));
      const auto place = static_cast<std::size_t>(rank);
      streams[place] = make_stream();
      data[place] = allocate<float>(kCount);
      const auto value = static_cast<float>(rank + 1);
      upload(data[place], {value, 10 * value, 100 * value, 1000 * value});
    }
  }

  ncclResult_t add(std::size_t rank, std::size_t count = kCount) const {
    return ncclAllReduce(data[rank], data[rank], count, ncclFloat32, ncclSum, communicators[rank], streams[rank]);
  }
  void add_all() const {
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (std::size_t rank = 0; rank < kRanks; ++rank) REQUIRE(add(rank) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
  }
  // Polls until all communicators have done what they were given.
  void poll() const {
    for (const ncclComm_t communicator : communicators) {
      ncclResult_t state = ncclInProgress;
      while (state == ncclInProgress) REQUIRE(ncclCommGetAsyncError(communicator, &state) == ncclSuccess);
      REQUIRE(state == ncclSuccess);
    }
  }
  void begin_capture() const {
    for (const cudaStream_t stream : streams) {
      must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    }
  }
  // Ends the captures of all streams before it instantiates the first graph, because a thread that is capturing must
  // not instantiate one.
  std::array<cudaGraphExec_t, kRanks> end_capture() const {
    std::array<cudaGraph_t, kRanks> graphs{};
    std::array<cudaGraphExec_t, kRanks> executables{};
    for (std::size_t rank = 0; rank < kRanks; ++rank) must(cudaStreamEndCapture(streams[rank], &graphs[rank]));
    for (std::size_t rank = 0; rank < kRanks; ++rank) must(cudaGraphInstantiate(&executables[rank], graphs[rank], 0));
    return executables;
  }
  std::vector<float> result(std::size_t rank) const {
    must(cudaSetDevice(static_cast<int>(rank)));
    must(cudaStreamSynchronize(streams[rank]));
    return download(data[rank], kCount);
  }

  std::array<ncclComm_t, kRanks> communicators{};
  std::array<cudaStream_t, kRanks> streams{};
  std::array<float*, kRanks> data{};
};

}  // namespace

TEST_CASE("stand-in: a sum over ranks is computed when all ranks have reached it") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Ranks ranks(seed);
    // Rank 1 is late, because it doubles its numbers first.
    must(cudaSetDevice(1));
    must(run(apply, 1, 1, ranks.streams[1], ranks.data[1], 2, 0));
    ranks.add_all();
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      CHECK(ranks.result(rank) == std::vector<float>{8, 60, 600, 6000});
    }
    ranks.add_all();
    CHECK(ranks.result(2) == std::vector<float>{24, 180, 1800, 18000});
    CHECK(violations().empty());
  }
}

TEST_CASE("stand-in: sums over ranks are captured with the stream's other work") {
  const Ranks ranks;
  ranks.begin_capture();
  ranks.add_all();
  const auto graphs = ranks.end_capture();
  for (int round = 0; round < 2; ++round) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) must(cudaGraphLaunch(graphs[rank], ranks.streams[rank]));
  }
  CHECK(ranks.result(1) == std::vector<float>{18, 180, 1800, 18000});
  CHECK(violations().empty());
}

TEST_CASE("stand-in: ranks that issue different sums, or none, are a violation") {
  const Ranks different;
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (std::size_t rank = 0; rank < kRanks; ++rank) REQUIRE(different.add(rank, kCount - rank / 2) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  CHECK_THAT(violations(), ContainsSubstring("call 1 of rank 2 has 3 elements where another rank had 4"));

  const Ranks missing;
  REQUIRE(ncclGroupStart() == ncclSuccess);
  REQUIRE(missing.add(0) == ncclSuccess);
  REQUIRE(missing.add(2) == ncclSuccess);
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  must(cudaSetDevice(0));
  CHECK(cudaStreamSynchronize(missing.streams[0]) == cudaErrorLaunchTimeout);
  CHECK_THAT(violations(), ContainsSubstring("waits for ever; the streams wait at: ncclAllReduce (device 0), ncclAll"));
}

TEST_CASE("stand-in: all ranks must reach their sums in the same order") {
  // Two sums of different lengths; rank 1 launches their graphs in reverse order.
  const Ranks ranks;
  std::array<std::array<cudaGraphExec_t, kRanks>, 2> graphs{};
  for (std::size_t sum = 0; sum < 2; ++sum) {
    ranks.begin_capture();
    REQUIRE(ncclGroupStart() == ncclSuccess);
    for (std::size_t rank = 0; rank < kRanks; ++rank) REQUIRE(ranks.add(rank, kCount - sum) == ncclSuccess);
    REQUIRE(ncclGroupEnd() == ncclSuccess);
    graphs[sum] = ranks.end_capture();
  }
  CHECK(violations().empty());
  for (std::size_t sum = 0; sum < 2; ++sum) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      must(cudaGraphLaunch(graphs[rank == 1 ? 1 - sum : sum][rank], ranks.streams[rank]));
    }
  }
  static_cast<void>(ranks.result(0));
  CHECK_THAT(violations(), ContainsSubstring("the ranks come to calls of different lengths"));
}

TEST_CASE("stand-in: one rank per device, one thread's calls in a group, streams of the rank's device") {
  const Ranks ranks;
  REQUIRE(ranks.add(0) == ncclSuccess);
  CHECK_THAT(violations(), ContainsSubstring("outside of a group"));
  CHECK(ncclAllReduce(ranks.data[0], ranks.data[0], kCount, ncclFloat32, ncclSum, ranks.communicators[0],
                      ranks.streams[1]) == ncclInvalidArgument);
  CHECK_THAT(violations(), ContainsSubstring("rank 0 is of device 0 and its stream of device 1"));
}

TEST_CASE("stand-in: nothing may be enqueued behind a sum that a non-blocking communicator has not started") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Ranks ranks(seed, false);
    const auto add_all = [&] {
      REQUIRE(ncclGroupStart() == ncclSuccess);
      for (std::size_t rank = 0; rank < kRanks; ++rank) REQUIRE(ranks.add(rank) == ncclSuccess);
      REQUIRE(ncclGroupEnd() == ncclInProgress);
    };
    add_all();
    ranks.poll();
    CHECK(ranks.result(0) == std::vector<float>{6, 60, 600, 6000});
    CHECK(violations().empty());
    add_all();
    static_cast<void>(ranks.result(1));
    CHECK_THAT(violations(), ContainsSubstring("still issuing a call"));
    CHECK(ranks.add(0) == ncclInvalidArgument);
    CHECK_THAT(violations(), ContainsSubstring("of a communicator whose last call is in progress"));
  }
}

namespace {

// Joins the clique of `id` as one rank.
ncclResult_t join(ncclComm_t& communicator, const ncclUniqueId& id, int ranks, int rank, bool is_blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = is_blocking ? 1 : 0;
  return ncclCommInitRankConfig(&communicator, ranks, id, rank, &config);
}

ncclResult_t state_of(ncclComm_t communicator) {
  ncclResult_t state = ncclSuccess;
  REQUIRE(ncclCommGetAsyncError(communicator, &state) == ncclSuccess);
  return state;
}

}  // namespace

TEST_CASE("stand-in: ranks connect when all are there, each once, and each on a GPU of its own") {
  cuda_stand_in::reset({.devices = 2});
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  ncclComm_t first = nullptr;
  ncclComm_t again = nullptr;
  ncclComm_t second = nullptr;
  CHECK(join(first, id, 2, 0, false) == ncclInProgress);
  CHECK(state_of(first) == ncclInProgress);
  CHECK(join(again, id, 2, 0, false) == ncclInvalidUsage);
  CHECK_THAT(violations(), ContainsSubstring("rank 0 joins twice"));
  CHECK(join(again, id, 3, 1, false) == ncclInvalidUsage);
  CHECK_THAT(violations(), ContainsSubstring("rank 1 of 3 joins 2 ranks"));
  CHECK(join(second, id, 2, 1, false) == ncclInProgress);
  CHECK(state_of(second) == ncclInvalidUsage);
  CHECK_THAT(violations(), ContainsSubstring("two ranks on device 0"));

  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  CHECK(join(first, id, 2, 0, true) == ncclInternalError);
  CHECK_THAT(violations(), ContainsSubstring("waits for ever for the other ranks"));
}

TEST_CASE("stand-in: ranks of several processes add up, and wait for each other") {
  cuda_stand_in::reset({.devices = 2});
  ncclUniqueId id{};
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  // Each process adds twice and ends with 0 if the sums are right.
  const auto run_rank = [&](int rank) {
    if (cudaSetDevice(rank) != cudaSuccess) return 1;
    ncclComm_t communicator = nullptr;
    if (join(communicator, id, 2, rank, false) != ncclInProgress) return 2;
    ncclResult_t state = ncclInProgress;
    const auto poll = [&] {
      do {
        if (ncclCommGetAsyncError(communicator, &state) != ncclSuccess) return false;
      } while (state == ncclInProgress);
      return state == ncclSuccess;
    };
    if (!poll()) return 3;
    cudaStream_t stream = nullptr;
    void* data = nullptr;
    const std::array<float, 2> own{1.0F + static_cast<float>(rank), 10.0F};
    std::array<float, 2> sum{};
    if (cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0) != cudaSuccess ||
        cudaMalloc(&data, sizeof own) != cudaSuccess ||
        cudaMemcpyAsync(data, own.data(), sizeof own, cudaMemcpyHostToDevice, stream) != cudaSuccess) {
      return 4;
    }
    for (int round = 0; round < 2; ++round) {
      const ncclResult_t result = ncclAllReduce(data, data, 2, ncclFloat32, ncclSum, communicator, stream);
      if (result != ncclInProgress || !poll()) return 5;
    }
    if (cudaMemcpyAsync(sum.data(), data, sizeof sum, cudaMemcpyDeviceToHost, stream) != cudaSuccess) return 6;
    if (cudaStreamSynchronize(stream) != cudaSuccess || !violations().empty()) return 7;
    return sum == std::array<float, 2>{6.0F, 40.0F} ? 0 : 8;
  };
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(run_rank(1));
  CHECK(run_rank(0) == 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace arbalest::tests
