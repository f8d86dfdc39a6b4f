// fault_matrix.py runs this small job of several processes, of which one has a fault.
// Usage: fault_program MODULE_DIRECTORY KIND INSTANT RANK. The kinds are kill, stop, segfault, exit and exception. The
// instants are start, end, and a number n: inside an all-reduce, when the n-th part of a slice or sum has arrived.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "engine/process/world.h"
#include "tests/process/faulty_transport.h"
#include "tests/process/vectors.h"

namespace arbalest::tests {
namespace {

using engine::Error;
using engine::ErrorKind;
using engine::process::Phase;
using engine::process::World;

constexpr int kRounds = 4;
constexpr std::size_t kElements = 300'000;
constexpr int kOwnExitCode = 7;
constexpr int kPeerExitCode = 8;

void have_fault(const std::string& kind) {
  if (kind == "kill") raise(SIGKILL);
  if (kind == "stop") raise(SIGSTOP);
  if (kind == "segfault") raise(SIGSEGV);
  if (kind == "exit") _exit(0);
  if (kind == "exception") throw std::runtime_error("an exception of its own");
}

void train(World& world) {
  const Addends addends(world.size(), kElements, 1);
  std::vector<float> values(kElements);
  const auto sum = world.prepare_all_reduce(values);
  for (int round = 0; round < kRounds; ++round) {
    world.set_position(static_cast<std::uint64_t>(round), Phase::kTraining);
    world.any_of(0);
    values = addends.of_rank[static_cast<std::size_t>(world.rank())];
    sum->start(world.next_turn());
    sum->wait();
    if (values != addends.sum) engine::fail(ErrorKind::kInternal, "a sum is wrong");  // as after a broken transfer
  }
}

int run(const std::string& module_directory, const std::string& kind, const std::string& instant, int rank) {
  std::unique_ptr<World> world;
  int exit_code = kOwnExitCode;
  std::string message;
  try {
    const auto launch = engine::process::find_launch([](const char* name) -> std::optional<std::string> {
      const char* value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    engine::process::CommunicationOptions options;
    options.watchdog.peer_timeout_seconds = 3.0;
    options.exit_code = [](ErrorKind error) { return error == ErrorKind::kPeer ? kPeerExitCode : kOwnExitCode; };
    const auto open = [&]() -> std::unique_ptr<engine::process::Transport> {
      auto transport = engine::process::open_module_transport(*launch, {module_directory});
      const int part = transport->rank() == rank ? std::atoi(instant.c_str()) : 0;
      return std::make_unique<FaultyTransport>(std::move(transport), part, [&kind] { have_fault(kind); });
    };
    if (!launch) return 2;
    world = std::make_unique<World>(open, options);
    if (world->rank() == rank && instant == "start") have_fault(kind);
    train(*world);
    if (world->rank() == rank && instant == "end") have_fault(kind);
    world->close();
    return 0;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kPeer) exit_code = kPeerExitCode;
    message = error.what();
  } catch (const std::exception& error) {
    message = error.what();
  }
  const std::string line = fmt::format("arbalest: error: {}\n", message);
  static_cast<void>(write(STDERR_FILENO, line.data(), line.size()) < 0);
  if (world != nullptr) world->abort(exit_code);
  return exit_code;
}

}  // namespace
}  // namespace arbalest::tests

int main(int argc, char** argv) {
  return argc < 5 ? 2 : arbalest::tests::run(argv[1], argv[2], argv[3], std::atoi(argv[4]));
}
