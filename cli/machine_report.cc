#include "cli/machine_report.h"

#include <sys/utsname.h>

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <openssl/crypto.h>
#include <spdlog/version.h>
#include <zlib.h>
#include <CLI/Version.hpp>

#include "engine/backends/devices.h"
#include "engine/backends/precision_note.h"
#include "engine/backends/versions.h"
#include "engine/host/cgroup.h"
#include "engine/host/topology.h"
#include "messages/source_commit.h"
#include "report/json.h"
#include "train/session/bfloat16_speed.h"

namespace arbalest::cli {

using jobs::null_unless_set;
using nlohmann::ordered_json;

namespace {

constexpr const char* kCompiler =
#if defined(__clang__)
    "Clang " __clang_version__;
#else
    "GCC " __VERSION__;
#endif

// Splits a library's version number: 3021012 with base 1000 is 3.21.12, 100300 with base 100 is 10.3.0.
std::string dotted(int version, int base) {
  return fmt::format("{}.{}.{}", version / base / base, version / base % base, version % base);
}

ordered_json libraries() {
  ordered_json report = ordered_json::object();
  for (const auto& library : engine::library_versions()) report[library.name] = library.version;
  report["protobuf"] = dotted(GOOGLE_PROTOBUF_VERSION, 1000);
  report["spdlog"] = dotted(SPDLOG_VERSION, 100);
  report["fmt"] = dotted(FMT_VERSION, 100);
  report["CLI11"] = CLI11_VERSION;
  report["nlohmann_json"] = dotted(
      NLOHMANN_JSON_VERSION_MAJOR * 10000 + NLOHMANN_JSON_VERSION_MINOR * 100 + NLOHMANN_JSON_VERSION_PATCH, 100);
  report["zlib"] = zlibVersion();
  report["OpenSSL"] = OpenSSL_version(OPENSSL_VERSION_STRING);
  return report;
}

std::string operating_system() {
  utsname names{};
  return uname(&names) == 0 ? fmt::format("{} {} {}", names.sysname, names.release, names.machine) : "unknown";
}

constexpr std::array kPrecisions = {engine::Precision::kFloat32, engine::Precision::kTensorFloat32,
                                    engine::Precision::kBFloat16};

// The values of training.precision that the device supports.
ordered_json precisions_of(const engine::DeviceSpec& device) {
  ordered_json names = ordered_json::array();
  for (const engine::Precision precision : kPrecisions) {
    if (engine::precision_problem(device, precision).empty()) names.push_back(to_string(precision));
  }
  return names;
}

ordered_json precision_notes_of(const engine::DeviceSpec& device) {
  ordered_json notes = ordered_json::object();
  const std::vector<std::string> sets = engine::instruction_sets_in_force();
  for (const engine::Precision precision : kPrecisions) {
    notes[to_string(precision)] = engine::precision_note(device, precision, sets);
  }
  return notes;
}

// Measures how fast the CPU trains in BF16, as a multiple of FP32's speed; empty if it has no BF16.
ordered_json bfloat16_speed() {
  ordered_json speeds = ordered_json::object();
  for (const jobs::BFloat16Speed& speed : jobs::measure_bfloat16_speed()) {
    speeds[speed.model] = std::round(100.0 * speed.ratio) / 100.0;
  }
  return speeds;
}

}  // namespace

ordered_json environment_report() {
  const engine::CudaMachine gpus = engine::find_cuda_devices();
  const engine::host::CgroupLimits limits = engine::host::read_cgroup_limits();
  return {{"arbalest", ARBALEST_VERSION},
          {"source_commit", jobs::source_commit()},
          {"build_type", ARBALEST_BUILD_TYPE},
          {"compiler", kCompiler},
          {"cuda", gpus.problem.empty() ? fmt::format("{} GPU(s)", gpus.devices.size()) : gpus.problem},
          {"libraries", libraries()},
          {"operating_system", operating_system()},
          {"processor", engine::host::processor_name()},
          {"instruction_sets", engine::host::instruction_sets()},
          {"instruction_sets_in_force", engine::instruction_sets_in_force()},
          {"allowed_cores", engine::host::allowed_cores()},
          {"usable_cores", engine::host::usable_cores()},
          {"available_memory_bytes", engine::host::available_memory_bytes()},
          {"cgroup",
           {{"cores", null_unless_set(limits.cores)}, {"memory_unused_bytes", null_unless_set(limits.memory_unused)}}}};
}

ordered_json device_report(const engine::CudaMachine& gpus) {
  ordered_json report = ordered_json::array();
  for (const engine::CudaDeviceInfo& gpu : gpus.devices) {
    const std::string name = fmt::format("cuda:{}", gpu.ordinal);
    report.push_back({{"name", name},
                      {"processor", gpu.name},
                      {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)},
                      {"multiprocessors", gpu.multiprocessors},
                      {"memory_bytes", gpu.memory},
                      {"precisions", precisions_of({name, {}, gpu.ordinal})},
                      {"precision_notes", precision_notes_of({name, {}, gpu.ordinal})}});
  }
  report.push_back({{"name", "cpu"},
                    {"processor", engine::host::processor_name()},
                    {"cores", engine::host::allowed_cores()},
                    {"usable_cores", engine::host::usable_cores()},
                    {"available_memory_bytes", engine::host::available_memory_bytes()},
                    {"precisions", precisions_of({"cpu", {}, -1})},
                    {"precision_notes", precision_notes_of({"cpu", {}, -1})}});
  if (ordered_json speed = bfloat16_speed(); !speed.empty()) report.back()["bf16_speed_over_fp32"] = std::move(speed);
  return report;
}

std::string as_text(const ordered_json& report, int indentation) {
  const auto plain = [](const ordered_json& value) {
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "none" : value.dump();
  };
  std::string text;
  for (const auto& [key, value] : report.items()) {
    text += fmt::format("{:{}}{}:", "", indentation, key);
    if (value.is_object()) {
      text += fmt::format("\n{}", as_text(value, indentation + 2));
      continue;
    }
    for (const ordered_json& item : value.is_array() ? value : ordered_json::array({value})) {
      text += fmt::format(" {}", plain(item));
    }
    text += '\n';
  }
  return text;
}

}  // namespace arbalest::cli
