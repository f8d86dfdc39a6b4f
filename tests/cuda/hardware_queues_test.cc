// The number of hardware queues that a program requests from the driver.
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "engine/backends/cuda_devices.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/subprocess.h"

namespace arbalest::tests {
namespace {

constexpr const char* kPrinting = "prints its hardware queues";

// Starts this program with `environment` and returns the queues it prints.
std::string queues_with(const std::vector<std::string>& environment) {
  Subprocess program({"/proc/self/exe", kPrinting}, environment, std::filesystem::temp_directory_path());
  return program.wait().out;
}

}  // namespace

TEST_CASE(kPrinting, "[.]") {
  engine::find_cuda_devices();
  fmt::print("queues: {}\n", cuda_stand_in::hardware_queues());
}

TEST_CASE("a program requests all 32 hardware queues, unless the user has set a number") {
  CHECK_THAT(queues_with({}), Catch::Matchers::Contains("queues: 32\n"));
  CHECK_THAT(queues_with({"CUDA_DEVICE_MAX_CONNECTIONS=4"}), Catch::Matchers::Contains("queues: 4\n"));
}

}  // namespace arbalest::tests
