// How fast is the all-reduce between processes beside MPI's own? (Formulas: bench/README.md.) Run it under mpirun.
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/all_reduce/measured_transport.h"
#include "bench/all_reduce/measuring.h"
#include "bench/support/harness.h"
#include "cli/exit_codes.h"
#include "engine/error.h"
#include "engine/process/world.h"

namespace arbalest::bench {
namespace {

using engine::process::World;

// `measure` runs on every rank. An error ends all ranks.
int run_in_world(const std::function<void(World&, MeasuredTransport&)>& measure) {
  const auto launch = engine::process::find_launch([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
  if (!launch) engine::fail(engine::ErrorKind::kUsage, "start this program with mpirun -np 2 or more");
  std::vector<std::filesystem::path> directories = engine::process::module_directories();
  directories.push_back(directories.front().parent_path());  // of the build tree
  MeasuredTransport* transport = nullptr;
  World world(
      [&] {
        auto opened = std::make_unique<MeasuredTransport>(open_module_transport(*launch, directories));
        transport = opened.get();
        return opened;
      },
      {});
  try {
    measure(world, *transport);
    world.close();
    return 0;
  } catch (const engine::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    world.abort(cli::exit_code(error.kind()));
  }
}

int run(int argc, char** argv) {
  CLI::App app{"How fast is the all-reduce between processes beside MPI's own?"};
  std::vector<std::size_t> sizes{1000,    3000,      10'000,    30'000,    100'000,   300'000,
                                 430'000, 1'000'000, 3'000'000, 8'000'000, 25'000'000};
  Measurements measurements;
  app.add_option("--elements", sizes, "lengths of the vectors")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 28));
  app.add_option("--turns", measurements.turns, "turns of each method")
      ->capture_default_str()
      ->check(CLI::Range(3, 1000));
  app.add_option("--chunk", measurements.options.chunk, "floats of a message of ours")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{16}, std::size_t{1} << 28));
  app.add_option("--window", measurements.options.window, "messages of ours under way between two ranks")
      ->capture_default_str()
      ->check(CLI::Range(std::size_t{1}, std::size_t{32}));
  return run_program(app, argc, argv, [&] {
    return run_in_world([&](World& world, MeasuredTransport& transport) {
      Measuring measuring(world, transport, measurements);
      for (const std::size_t elements : sizes) measuring.measure(elements);
    });
  });
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) { return arbalest::bench::run(argc, argv); }
