// mpi_test runs this program of several processes. Usage: mpi_program MODULE_DIRECTORY MODE [OPTIONS]. Modes:
//   check: every operation once, and its result
//   rounds SIGNAL RANK ROUND: all-reduces; in a round a rank sends itself a signal while its all-reduce is under way
//   idle SIGNAL RANK: the others wait for nothing, as if they computed
//   fail RANK: a rank has an error of its own
//   late RANK: a rank announces an error of its own, and ends long after the others have given up
//   end SIGNAL RANK: a rank sends itself a signal instead of taking leave of the others
//   no-start: a single process, whose MPI never starts
//   busy: a single process with an error of its own, whose owner never ends
//   leave COUNT: a single process, which is aborted while its communication ends; COUNT decides how far that has come
//   silent: a single process; of its two ranks the other one is silent, and the end of all processes hangs
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "engine/process/world.h"
#include "tests/process/vectors.h"

namespace arbalest::tests {
namespace {

using engine::Error;
using engine::ErrorKind;
using engine::process::AllReduceMethod;
using engine::process::Phase;
using engine::process::World;

int exit_code(ErrorKind kind) {
  if (kind == ErrorKind::kUsage) return 2;
  if (kind == ErrorKind::kDiverged) return 7;
  return kind == ErrorKind::kPeer ? 8 : 1;
}

int exit_code(const Error& error) { return exit_code(error.kind()); }

// Each line is one write, which mpirun keeps together.
void say(int file, const std::string& line) { static_cast<void>(write(file, line.data(), line.size()) < 0); }

void expect(bool is_right, const char* what) {
  if (!is_right) engine::fail(ErrorKind::kInternal, "wrong: {}", what);
}

void check_bytes(World& world) {
  std::string text = world.rank() == world.size() - 1 ? std::string(3'000'000, 'x') : "";
  world.broadcast(text, world.size() - 1);
  expect(text == std::string(3'000'000, 'x'), "broadcast");
  const std::vector<std::string> gathered = world.gather(std::to_string(world.rank()));
  expect(gathered.size() == static_cast<std::size_t>(world.rank() == 0 ? world.size() : 0), "gather");
  for (std::size_t rank = 0; rank < gathered.size(); ++rank) expect(gathered[rank] == std::to_string(rank), "gather");
  expect(world.agree("the same").empty(), "agree");
  const int last = world.size() - 1;
  const std::vector<int> differing = world.agree(world.rank() == last ? "another" : "the same");
  expect(differing == (last == 0 ? std::vector<int>{} : std::vector<int>{last}), "agree with a rank that differs");
  std::vector<engine::process::PendingFlags> pending;  // more messages than one call of MPI tests
  for (int i = 0; i < 100; ++i) pending.push_back(world.start_flags(std::uint64_t{1} << world.rank()));
  for (; !pending.empty(); pending.pop_back()) {
    expect(pending.back().wait() == (std::uint64_t{1} << world.size()) - 1, "many flags at a time");
  }
  expect(world.any_of(std::uint64_t{1} << world.rank()) == (std::uint64_t{1} << world.size()) - 1, "flags");
}

void check_sums(World& world, AllReduceMethod method) {
  world.set_all_reduce(method);
  for (const std::size_t elements : {1U, 1000U, 300'000U}) {
    const Addends addends(world.size(), elements, static_cast<unsigned>(elements));
    std::vector<float> values(elements);
    const auto sum = world.prepare_all_reduce(values);
    for (int round = 0; round < 3; ++round) {
      values = addends.of_rank[static_cast<std::size_t>(world.rank())];
      sum->start(world.next_turn());
      sum->wait();
      if (method == AllReduceMethod::kCanonical) expect(values == addends.sum, "all-reduce");
      for (std::size_t i = 0; i < elements; ++i) {
        expect(std::abs(values[i] - addends.sum[i]) < 1e-5F, "all-reduce by the library");
      }
    }
    const std::string bytes(reinterpret_cast<const char*>(values.data()), elements * sizeof(float));
    expect(world.agree(bytes).empty(), "all ranks have the same bits");
  }
}

void check(World& world) {
  check_bytes(world);
  check_sums(world, AllReduceMethod::kCanonical);
  check_sums(world, AllReduceMethod::kLibrary);
  world.barrier();
  say(STDOUT_FILENO, fmt::format("rank {} of {}, local {} of {}: right\n", world.rank(), world.size(),
                                 world.local_rank(), world.local_size()));
}

void rounds(World& world, int signal, int rank, int fatal_round) {
  std::vector<float> values(500'000);
  const auto sum = world.prepare_all_reduce(values);
  for (int round = 0;; ++round) {
    world.set_position(static_cast<std::uint64_t>(round), Phase::kTraining);
    world.any_of(0);
    sum->start(world.next_turn());
    if (world.rank() == rank && round == fatal_round) raise(signal);
    sum->wait();
  }
}

// This is rank 0 of two, of which the other one is never heard.
class SilentTransport : public engine::process::Transport {
 public:
  int rank() const noexcept override { return 0; }
  int size() const noexcept override { return 2; }
  int local_rank() const noexcept override { return 0; }
  int local_size() const noexcept override { return 1; }
  const std::string& host(int) const override { return host_; }
  void send(int, int, std::span<const std::byte>, engine::process::Notify) override {}
  void receive(int, int, std::span<std::byte>, engine::process::Notify) override {}
  void all_reduce_sum(std::span<const float>, float*, engine::process::Notify) override {}
  bool poll() override { return false; }
  void close() override {}
  void abort(int) noexcept override {
    for (;;) pause();
  }

 private:
  const std::string host_ = "elsewhere";
};

// This is the only rank. It tells when the end of the communication has begun.
class LeavingTransport final : public SilentTransport {
 public:
  explicit LeavingTransport(std::atomic<bool>& leaves) : leaves_(leaves) {}

  int size() const noexcept override { return 1; }
  void close() override { leaves_ = true; }
  void abort(int exit_code) noexcept override { _exit(exit_code); }

 private:
  std::atomic<bool>& leaves_;
};

void leave(int count) {
  std::atomic<bool> leaves = false;
  World world([&leaves] { return std::make_unique<LeavingTransport>(leaves); }, {});
  std::thread closer([&world] { world.close(); });
  while (!leaves) std::this_thread::yield();
  for (int i = 0; i < count; ++i) std::this_thread::yield();
  world.abort(7);
}

void wait_beside_silent_rank() {
  engine::process::CommunicationOptions options;
  options.watchdog.peer_timeout_seconds = 0.2;
  const World world([] { return std::make_unique<SilentTransport>(); }, options);
  for (;;) pause();
}

void stay_busy() {
  engine::process::CommunicationOptions options;
  options.owner_ends_seconds = 0.2;
  options.exit_code = [](ErrorKind kind) { return exit_code(kind); };
  World world([] { return std::make_unique<SilentTransport>(); }, options);
  world.announce_failure({ErrorKind::kDiverged, "the loss is not finite"});
  for (;;) pause();
}

void wait_for_start() {
  engine::process::CommunicationOptions options;
  options.start_timeout_seconds = 0.2;
  const auto open = []() -> std::unique_ptr<engine::process::Transport> {
    for (;;) pause();
  };
  const World world(open, options);
}

int run(int argc, char** argv) {
  std::unique_ptr<World> world;
  try {
    const std::string mode = argc > 2 ? argv[2] : "";
    if (mode == "silent") wait_beside_silent_rank();
    if (mode == "busy") stay_busy();
    if (mode == "leave") leave(std::atoi(argv[3]));
    if (mode == "no-start") wait_for_start();
    const auto number = [&](int index) { return index < argc ? std::atoi(argv[index]) : -1; };
    const auto launch = engine::process::find_launch([](const char* name) -> std::optional<std::string> {
      const char* value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    engine::process::CommunicationOptions options;
    options.exit_code = [](ErrorKind kind) { return exit_code(kind); };
    if (mode != "check") options.watchdog.peer_timeout_seconds = 3.0;
    world = engine::process::open_world(launch, options, {argv[1]});
    if (mode == "check") check(*world);
    if (mode == "rounds") rounds(*world, number(3), number(4), number(5));
    if (mode == "idle") {
      world->barrier();
      if (world->rank() == number(4)) raise(number(3));
      for (;;) pause();
    }
    if (mode == "late") {
      world->barrier();
      if (world->rank() == number(3)) {
        world->announce_failure({ErrorKind::kDiverged, "the loss is not finite"});
        for (;;) pause();
      }
      world->barrier();
    }
    if (mode == "end" && world->rank() == number(4)) raise(number(3));
    if (mode == "fail") {
      world->barrier();
      if (world->rank() == number(3)) engine::fail(ErrorKind::kUsage, "an error of its own");
      world->barrier();
    }
    world->close();
    return 0;
  } catch (const Error& error) {
    say(STDERR_FILENO, fmt::format("arbalest: error: {}\n", error.what()));
    if (world != nullptr) world->abort(exit_code(error));
    return exit_code(error);
  }
}

}  // namespace
}  // namespace arbalest::tests

int main(int argc, char** argv) { return arbalest::tests::run(argc, argv); }
