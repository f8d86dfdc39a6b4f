// Tests the stand-in's NCCL.
#include <nccl.h>

#include <array>

#include "tests/cuda/stand_in_rig.h"

namespace arbalest::tests {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 4;

struct Ranks {
  explicit Ranks(std::uint64_t seed = 1) {
    cuda_stand_in::reset({.devices = kRanks}, seed);
    REQUIRE(ncclCommInitAll(communicators.data(), kRanks, nullptr) == ncclSuccess);
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
  const std::array<int, 2> twice{1, 1};
  std::array<ncclComm_t, 2> refused{};
  CHECK(ncclCommInitAll(refused.data(), 2, twice.data()) == ncclInvalidUsage);
  CHECK_THAT(violations(), ContainsSubstring("two ranks on device 1"));
  REQUIRE(ranks.add(0) == ncclSuccess);
  CHECK_THAT(violations(), ContainsSubstring("outside of a group"));
  CHECK(ncclAllReduce(ranks.data[0], ranks.data[0], kCount, ncclFloat32, ncclSum, ranks.communicators[0],
                      ranks.streams[1]) == ncclInvalidArgument);
  CHECK_THAT(violations(), ContainsSubstring("rank 0 is of device 0 and its stream of device 1"));
}

}  // namespace arbalest::tests
