// GPUs of several processes, whose worlds are in threads of this one. They are connected by the stand-in's NCCL, to
// which threads and processes are the same (cuda_stand_in/clique.h). ../gpu_script runs processes under mpirun.
#include <nccl.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "engine/cuda/runtime/collective.h"
#include "engine/process/all_gather.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/process_rig.h"
#include "tests/support/schemes.h"
#include "tests/support/small_training.h"
#include "tests/support/subprocess.h"

namespace arbalest::tests {
namespace {

using engine::process::World;

scheduler::Progress train_shortly(TrainingRig& rig) { return rig.run(7); }

// Trains on the GPUs of all parts, in one process and in one for each part.
void compare(const std::vector<ProcessPart>& parts, const RigOptions& options, const Script& script) {
  ProcessPart alone;
  for (const ProcessPart& part : parts) {
    alone.devices.insert(alone.devices.end(), part.devices.begin(), part.devices.end());
    alone.learners.insert(alone.learners.end(), part.learners.begin(), part.learners.end());
  }
  const cuda_stand_in::Machine machine{.devices = static_cast<int>(alone.devices.size())};
  cuda_stand_in::reset(machine);
  const Outcome expected = train_alone(alone, options, script);
  cuda_stand_in::require_clean();
  for (std::uint64_t seed = 2; seed <= 3; ++seed) {
    cuda_stand_in::reset(machine, seed);
    check_equal(expected, train_over(parts, options, script));
    cuda_stand_in::require_clean();
  }
}

const std::vector<ProcessPart> kOneGpuEach = {{{"cuda:0"}, {2}}, {{"cuda:1"}, {2}}};
const std::vector<ProcessPart> kUnequal = {{{"cuda:0", "cuda:1"}, {1, 2}}, {{"cuda:2"}, {1}}};

constexpr double kShortTimeout = 5.0;  // of the watchdog, in seconds

// A process ends with this error; none if it ends well.
struct End {
  std::optional<engine::ErrorKind> kind;
  std::string message;
};

// Runs `body` in two processes, which tell each other their errors as jobs::train does, and returns their ends.
std::array<End, 2> ends_in_processes(const std::function<void(World&, MemoryNetwork&)>& body) {
  MemoryNetwork network(2);
  std::array<End, 2> ends;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto world = network.open(static_cast<int>(rank));
      try {
        body(*world, network);
      } catch (const engine::Error& error) {
        world->announce_failure(error);
        ends[rank] = {error.kind(), error.what()};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

// Each process trains on a GPU of its own.
std::array<End, 2> ends_of(const std::function<void(World&, TrainingRig&, MemoryNetwork&)>& body) {
  return ends_in_processes([&](World& world, MemoryNetwork& network) {
    RigOptions options = options_of(kOneGpuEach[static_cast<std::size_t>(world.rank())], options_on({}, {}));
    options.world = &world;
    TrainingRig rig(options);
    body(world, rig, network);
  });
}

constexpr const char* kPrinting = "prints the settings of NCCL";

// Starts this program with `environment` and returns the settings it prints.
std::string settings_with(const std::vector<std::string>& environment) {
  Subprocess program({"/proc/self/exe", kPrinting}, environment, std::filesystem::temp_directory_path());
  return program.wait().out;
}

}  // namespace

TEST_CASE(kPrinting, "[.]") { fmt::print("NCCL: {} {}\n", std::getenv("NCCL_ALGO"), std::getenv("NCCL_PROTO")); }

TEST_CASE("NCCL adds in the order of a ring, unless the user has set something else") {
  CHECK_THAT(settings_with({}), ContainsSubstring("NCCL: Ring Simple\n"));
  CHECK_THAT(settings_with({"NCCL_ALGO=Tree"}), ContainsSubstring("NCCL: Tree Simple\n"));
}

TEST_CASE("processes with GPUs: every scheme trains to the bytes of one process", "[training]") {
  for (const sma::Options& scheme : short_schemes()) {
    INFO(name_of(scheme));
    RigOptions options = options_on({}, {});
    options.synchronization = scheme;
    options.compare_rounds = 2;
    compare(kOneGpuEach, options, train_shortly);
  }
}

TEST_CASE("processes with GPUs: processes may have different numbers of GPUs", "[training]") {
  RigOptions options = options_on({}, {});
  options.compare_rounds = 2;
  compare(kUnequal, options, train_shortly);
  compare({kUnequal[1], kUnequal[0]}, options, train_shortly);
}

TEST_CASE("processes with GPUs: statistics, moving averages and cached data give the bytes of one process",
          "[training]") {
  RigOptions options = options_on({}, {});
  options.layers = normalized_network();
  options.statistic_batches = 5;
  compare(kOneGpuEach, options, train_shortly);
  options = options_on({}, {});
  options.moving_average_epochs = 0.3;
  options.input = RigInput::kResident;
  options.graphs = false;
  compare(kUnequal, options, train_shortly);
}

TEST_CASE("processes with GPUs: resizes, switches, and replicas' own losses give those of one process", "[training]") {
  RigOptions options = options_on({}, {});
  options.switches = {short_schemes()[2]};
  options.most_learners = 4;
  options.evaluates_replicas = true;
  const auto on_each = [](TrainingRig& rig, int learners) { return std::vector<int>(rig.pools().size(), learners); };
  compare(kOneGpuEach, options, [&](TrainingRig& rig) {
    scheduler::Progress progress = rig.run(3);
    const double loss = rig.scheduler().evaluate_replicas(rig.test_ring());
    rig.resize(on_each(rig, 1));
    progress.add(rig.run(2));
    rig.resize(on_each(rig, 2));
    rig.scheduler().switch_to(options.switches[0], scheduler::RateScaling::kKeep, on_each(rig, 2));
    progress.add(rig.run(3));
    progress.replica_distance = loss;  // compared with that of one process
    return progress;
  });
}

TEST_CASE("processes with GPUs: a change of teams changes no byte", "[training]") {
  const std::size_t scheme = GENERATE(std::size_t{0}, std::size_t{2}, std::size_t{3});
  RigOptions options = options_on({}, {});
  options.synchronization = short_schemes()[scheme];
  const auto train_in_teams = [&](const std::vector<int>& teams) {
    return [teams](TrainingRig& rig) {
      scheduler::Progress progress = rig.run(3);
      for (const int team : teams) {
        for (const auto& pool : rig.pools()) {
          pool->prepare(pool->count(), team);
          pool->set_team(team);
        }
        rig.scheduler().change_teams();
        for (const auto& pool : rig.pools()) pool->release_idle();
      }
      progress.add(rig.run(4));
      return progress;
    };
  };
  cuda_stand_in::reset({.devices = 2});
  const Outcome alone = train_alone({{"cuda:0", "cuda:1"}, {2, 2}}, options, train_in_teams({}));
  cuda_stand_in::reset({.devices = 2});
  for (const Outcome& outcome : train_over(kOneGpuEach, options, train_in_teams({2}))) {
    CHECK(outcome.model == alone.model);
  }
}

TEST_CASE("processes with GPUs: a saved state goes on to the same bytes in another number of processes", "[training]") {
  RigOptions options = options_on({}, {});
  const ProcessPart alone{{"cuda:0", "cuda:1"}, {2, 2}};
  cuda_stand_in::reset({.devices = 2});
  const Outcome expected = train_alone(alone, options, train_shortly);
  cuda_stand_in::reset({.devices = 2});
  scheduler::TrainingState state;
  train_alone(alone, options, [&](TrainingRig& rig) {
    const scheduler::Progress progress = rig.run(4);
    state = rig.scheduler().save();
    return progress;
  });
  const std::vector<Outcome> processes = train_over(kOneGpuEach, options, [&](TrainingRig& rig) {
    rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners,
                            std::vector<int>(rig.pools().size(), 2));
    rig.ring().restart(state.batches);
    return rig.run(3);
  });
  CHECK((processes[0].model == expected.model));
  CHECK((processes[1].model == expected.model));
  CHECK((processes[1].replicas[1] == expected.replicas[3]));
}

TEST_CASE("processes with GPUs: a process that is cut off ends the others, which name it", "[training]") {
  for (const int rounds : {0, 3}) {
    CAPTURE(rounds);
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(rounds) + 1);
    const auto ends = ends_of([&](World& world, TrainingRig& rig, MemoryNetwork& network) {
      rig.run(rounds);
      world.set_peer_timeout(kShortTimeout);
      if (world.rank() == 0) {
        network.cut_off(1);
        rig.run(40);  // NCCL does not say that rank 1 is gone
      }
      world.check(60.0);
    });
    CHECK(ends[0].kind == engine::ErrorKind::kPeer);
    CHECK_THAT(ends[0].message, ContainsSubstring("rank 1 on host here is dead, stopped or cut off"));
    CHECK(ends[1].kind == engine::ErrorKind::kPeer);
    CHECK_NOTHROW(cuda_stand_in::require_clean());
  }
}

TEST_CASE("processes with GPUs: the watchdog names the process that NCCL has lost", "[training]") {
  cuda_stand_in::reset({.devices = 2});
  const auto ends = ends_of([&](World& world, TrainingRig& rig, MemoryNetwork& network) {
    rig.run(1);
    world.set_peer_timeout(kShortTimeout);
    if (world.rank() == 0) {
      network.cut_off(1);
      cuda_stand_in::fail_all_reduce(ncclRemoteError);
      rig.run(40);
    }
    world.check(60.0);
  });
  CHECK_THAT(ends[0].message, ContainsSubstring("rank 1 on host here is dead, stopped or cut off"));
}

TEST_CASE("processes with GPUs: a link that fails between living processes ends them all", "[training]") {
  cuda_stand_in::reset({.devices = 2});
  const auto ends = ends_of([&](World& world, TrainingRig& rig, MemoryNetwork&) {
    rig.run(1);
    world.set_peer_timeout(kShortTimeout);
    cuda_stand_in::fail_all_reduce(ncclRemoteError);
    rig.run(40);
  });
  for (const End& end : ends) {
    CHECK(end.kind == engine::ErrorKind::kPeer);
    CHECK_THAT(end.message, ContainsSubstring("remote process exited or there was a network error"));
  }
  CHECK_NOTHROW(cuda_stand_in::require_clean());
}

TEST_CASE("processes with GPUs: a GPU that fails ends all processes, and the error names it", "[training]") {
  for (int after = 0; after < 150; after += 25) {
    CAPTURE(after);
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(after) + 1);
    std::atomic<int> ready = 0;
    const auto ends = ends_of([&](World&, TrainingRig& rig, MemoryNetwork&) {
      rig.run(1);
      if (ready++ == 0) cuda_stand_in::fail_execution(cudaErrorIllegalAddress, after);
      rig.run(40);
    });
    const std::size_t failed = ends[0].kind == engine::ErrorKind::kDevice ? 0 : 1;
    CHECK(ends[failed].kind == engine::ErrorKind::kDevice);
    CHECK_THAT(ends[failed].message, ContainsSubstring("cuda:" + std::to_string(failed)));
    CHECK(ends[1 - failed].kind == engine::ErrorKind::kPeer);
    CHECK_THAT(ends[1 - failed].message,
               ContainsSubstring("rank " + std::to_string(failed) + " on host here has failed") &&
                   ContainsSubstring("cuda:" + std::to_string(failed)));
    CHECK_NOTHROW(cuda_stand_in::require_clean(false));
  }
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
}

TEST_CASE("processes with GPUs: two processes on one GPU are refused", "[training]") {
  cuda_stand_in::reset({.devices = 1});
  const auto ends =
      ends_in_processes([](World& world, MemoryNetwork&) { engine::cuda::NcclCollective collective({0}, world); });
  for (const End& end : ends) CHECK(end.kind == engine::ErrorKind::kPeer);
  CHECK_THAT(ends[0].message + ends[1].message,
             ContainsSubstring("NCCL cannot connect the 2 GPUs of the job: invalid"));
  CHECK_THROWS_WITH(cuda_stand_in::require_clean(), ContainsSubstring("two ranks on device 0"));
  cuda_stand_in::reset();
}

TEST_CASE("processes with GPUs: a process that never connects its GPU is not waited for without end", "[training]") {
  cuda_stand_in::reset({.devices = 2});
  const auto ends = ends_in_processes([](World& world, MemoryNetwork&) {
    if (world.rank() == 0) engine::cuda::NcclCollective collective({0}, world, /*connect_seconds=*/0.2);
    // The World's operations of a process that connects its GPU.
    engine::process::all_gather(world, 1.0);
    std::string id;
    world.broadcast(id);
    world.check(60.0);
  });
  CHECK(ends[0].kind == engine::ErrorKind::kPeer);
  CHECK_THAT(ends[0].message, ContainsSubstring("has not connected the 2 GPUs of the job within 0.2 s") &&
                                  ContainsSubstring("NCCL_SOCKET_IFNAME"));
  CHECK_THAT(ends[1].message, ContainsSubstring("rank 0 on host here has failed"));
}

}  // namespace arbalest::tests
