#include "engine/backends/devices.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include "engine/backends/cuda_devices.h"
#include "engine/base/error.h"
#include "engine/cpu/device/device.h"
#include "engine/cpu/exchange/device_exchange.h"
#include "engine/cpu/onednn/instruction_sets.h"
#include "engine/cpu/runtime/errors.h"
#include "engine/host/topology.h"
#include "engine/process/all_gather.h"
#include "engine/process/world.h"

namespace arbalest::engine {

namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kCuda = "cuda";

[[noreturn]] void bad_device(std::string_view name, std::string_view reason) {
  fail(ErrorKind::kInvalidJob,
       "device '{}': {}; write 'cpu' or name cores, as in 'cpu:0-1' or 'cpu:0,2', or a GPU, as in 'cuda:0' "
       "('arbalest devices' lists what is here)",
       name, reason);
}

int parse_number(std::string_view name, std::string_view text, std::string_view what) {
  int number = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size() || number < 0) {
    bad_device(name, fmt::format("'{}' is not a {} number", text, what));
  }
  return number;
}

int parse_core(std::string_view name, std::string_view text) { return parse_number(name, text, "core"); }

void append_range(std::string_view name, std::string_view range, std::vector<int>& cores) {
  const std::size_t dash = range.find('-', 1);  // a range that begins with '-' is malformed
  const int first = parse_core(name, range.substr(0, dash));
  const int last = dash == std::string_view::npos ? first : parse_core(name, range.substr(dash + 1));
  if (last < first) bad_device(name, fmt::format("the range '{}' runs backwards", range));
  const std::vector<int> allowed = host::allowed_cores();
  for (int core = first; core <= last; ++core) {
    if (!std::ranges::binary_search(allowed, core)) {
      bad_device(name, fmt::format("this process has no core {} (it may use {})", core, fmt::join(allowed, ",")));
    }
    if (std::ranges::find(cores, core) != cores.end()) bad_device(name, fmt::format("core {} is named twice", core));
    cores.push_back(core);
  }
}

}  // namespace

DeviceSpec parse_device(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  if (kind == kCuda) {
    const int ordinal = colon == std::string_view::npos ? 0 : parse_number(name, name.substr(colon + 1), "GPU");
    return {std::string(name), {}, ordinal};
  }
  if (kind != kCpu) bad_device(name, fmt::format("there is no kind of device '{}'", kind));
  DeviceSpec spec{std::string(name), {}};
  if (colon == std::string_view::npos) return spec;
  std::string_view list = name.substr(colon + 1);
  for (;;) {
    const std::size_t comma = list.find(',');
    append_range(name, list.substr(0, comma), spec.cores);
    if (comma == std::string_view::npos) break;
    list = list.substr(comma + 1);
  }
  std::ranges::sort(spec.cores);
  return spec;
}

int core_count(const DeviceSpec& spec) {
  if (spec.is_cuda()) return 1;
  return spec.cores.empty() ? host::usable_cores() : static_cast<int>(spec.cores.size());
}

void check_disjoint(const std::vector<DeviceSpec>& devices) {
  for (std::size_t a = 0; a < devices.size(); ++a) {
    for (std::size_t b = a + 1; b < devices.size(); ++b) {
      if (devices[a].is_cuda() != devices[b].is_cuda()) {
        bad_device(devices[b].name,
                   fmt::format("a job runs on CPU devices or on GPUs, and '{}' is of the other kind", devices[a].name));
      }
      if (devices[a].is_cuda()) {
        if (devices[a].cuda_ordinal == devices[b].cuda_ordinal) bad_device(devices[b].name, "this GPU is named twice");
        continue;
      }
      if (devices[a].cores.empty() || devices[b].cores.empty()) {
        bad_device(devices[b].name, "'cpu' means all cores, so it cannot be combined with another CPU device");
      }
      for (const int core : devices[b].cores) {
        if (std::ranges::find(devices[a].cores, core) != devices[a].cores.end()) {
          bad_device(devices[b].name, fmt::format("core {} belongs to '{}' already", core, devices[a].name));
        }
      }
    }
  }
}

std::vector<std::string> instruction_sets_in_force() {
  std::vector<std::string> sets = host::instruction_sets();
  std::erase_if(sets, [](const std::string& set) { return !cpu::limit_allows(set); });
  return sets;
}

std::string precision_problem(const DeviceSpec& device, Precision precision) {
  const std::vector<std::string> allowed = instruction_sets_in_force();
  const std::string problem = precision_problem(device, precision, allowed);
  const bool is_limited = !problem.empty() && precision_problem(device, precision, host::instruction_sets()).empty();
  if (!is_limited) return problem;
  return fmt::format(
      "precision {} needs avx512_bf16, which this processor has, but ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA forbids it "
      "(allowed: {}); unset the variable, name a GPU, as in devices: \"cuda:0\", or leave precision out",
      to_string(precision), fmt::join(allowed, " "));
}

std::string precision_problem(const DeviceSpec& device, Precision precision,
                              std::span<const std::string> instruction_sets) {
  if (device.is_cuda() || precision == Precision::kFloat32) return "";
  constexpr std::string_view kNeeded = "avx512_bf16";
  const bool is_bfloat16 = precision == Precision::kBFloat16;
  if (is_bfloat16 && std::ranges::find(instruction_sets, kNeeded) != instruction_sets.end()) return "";
  const std::string reason =
      is_bfloat16 ? fmt::format("a GPU or a processor with {}, and '{}' is a processor without", kNeeded, device.name)
                  : fmt::format("a GPU, and '{}' is none", device.name);
  return fmt::format("precision {} needs {}; name a GPU, as in devices: \"cuda:0\", or leave precision out",
                     to_string(precision), reason);
}

CudaDeviceInfo find_cuda_device(const DeviceSpec& spec) {
  const CudaMachine machine = find_cuda_devices();
  if (!machine.problem.empty()) fail(ErrorKind::kInvalidJob, "device '{}': {}", spec.name, machine.problem);
  const std::size_t count = machine.devices.size();
  const auto ordinal = static_cast<std::size_t>(spec.cuda_ordinal);
  if (ordinal >= count) {
    fail(ErrorKind::kInvalidJob, "device '{}': this machine has {} GPU{}, numbered from 0", spec.name, count,
         count == 1 ? "" : "s");
  }
  return machine.devices[ordinal];
}

std::unique_ptr<Device> open_device(const DeviceSpec& spec, const DeviceOptions& options) {
  if (spec.is_cuda()) return open_cuda_device(spec, options);
  return cpu::translate_errors([&] { return std::make_unique<cpu::CpuDevice>(spec, options); });
}

namespace {

std::vector<Device*> devices_of(std::span<const std::unique_ptr<Device>> devices) {
  std::vector<Device*> pointers;
  for (const auto& device : devices) pointers.push_back(device.get());
  return pointers;
}

}  // namespace

std::unique_ptr<Collective> make_collective(std::span<const std::unique_ptr<Device>> devices, process::World& world) {
  // A single device averages without a collective, so its kind does not matter.
  const bool is_alone = devices.size() == 1 && world.size() == 1;
  if (is_alone || !devices.front()->is_cuda()) {
    return make_process_collective(static_cast<int>(devices.size()), world);
  }
  return make_cuda_collective(devices_of(devices), world);
}

std::vector<ExchangeMember> make_exchange(std::span<const std::unique_ptr<Device>> devices, process::World& world) {
  std::vector<int> counts;
  for (const double count : process::all_gather(world, static_cast<double>(devices.size()))) {
    counts.push_back(static_cast<int>(count));
  }
  const int first = std::reduce(counts.begin(), counts.begin() + world.rank());
  std::shared_ptr<ExchangeGroup> group;
  if (devices.front()->is_cuda()) {
    group = make_cuda_exchange(devices_of(devices), world);
  } else {
    group = std::make_shared<cpu::DeviceExchange>(std::move(counts), world);
  }
  std::vector<ExchangeMember> places;
  for (std::size_t d = 0; d < devices.size(); ++d) places.push_back({group, first + static_cast<int>(d)});
  return places;
}

std::vector<DeviceSpec> list_devices() {
  std::vector<DeviceSpec> devices;
  for (const CudaDeviceInfo& info : find_cuda_devices().devices) {
    devices.push_back({fmt::format("{}:{}", kCuda, info.ordinal), {}, info.ordinal});
  }
  if (devices.empty()) devices.push_back({std::string(kCpu), {}, -1});
  return devices;
}

}  // namespace arbalest::engine
