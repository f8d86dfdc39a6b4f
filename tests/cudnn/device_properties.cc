#include "tests/cudnn/device_properties.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace arbalest::tests::cudnn {

namespace {

using engine::ErrorKind;
using engine::fail;

enum class Form { kPositive, kNumber, kThree, kText };

struct Property {
  const char* name;
  Form form;
};

// cuDNN rejects a description that lacks one of these properties, and does not say which one.
constexpr std::array kProperties = {
    Property{"deviceName", Form::kText},
    Property{"deviceVer", Form::kPositive},
    Property{"driverVer", Form::kPositive},
    Property{"multiProcessorCount", Form::kPositive},
    Property{"smClockRateKHz", Form::kPositive},
    Property{"memClockRateKHz", Form::kPositive},
    Property{"l2CacheSize", Form::kPositive},
    Property{"totalGlobalMem", Form::kPositive},
    Property{"warpSize", Form::kPositive},
    Property{"maxThreadsPerBlock", Form::kPositive},
    Property{"maxThreadsPerSM", Form::kPositive},
    Property{"maxCtasPerSM", Form::kPositive},
    Property{"maxBlockSize", Form::kThree},
    Property{"maxGridSize", Form::kThree},
    Property{"regsPerBlock", Form::kPositive},
    Property{"maxRegistersPerSM", Form::kPositive},
    Property{"maxSharedMemoryPerBlock", Form::kPositive},
    Property{"maxSharedMemoryPerBlockOptin", Form::kPositive},
    Property{"reservedSharedMemoryPerBlock", Form::kNumber},
    Property{"supportCoopLaunch", Form::kNumber},
    Property{"isTccDriver", Form::kNumber},
    Property{"cudaDeviceId", Form::kNumber},
    Property{"pciDeviceId", Form::kNumber},
};

const char* words(Form form) {
  switch (form) {
    case Form::kPositive: return "a whole number above 0";
    case Form::kNumber: return "a whole number of at least 0";
    case Form::kThree: return "a list of three whole numbers above 0";
    case Form::kText: break;
  }
  return "a text";
}

bool is_at_least(const nlohmann::json& value, std::int64_t least) {
  return value.is_number_integer() && value.get<std::int64_t>() >= least;
}

bool has_form(const nlohmann::json& value, Form form) {
  switch (form) {
    case Form::kPositive: return is_at_least(value, 1);
    case Form::kNumber: return is_at_least(value, 0);
    case Form::kThree:
      return value.is_array() && value.size() == 3 &&
             std::ranges::all_of(value, [](const nlohmann::json& item) { return is_at_least(item, 1); });
    case Form::kText: break;
  }
  return value.is_string();
}

// Returns "file:line:column" for a byte of the text.
std::string place(const std::filesystem::path& file, std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size()));
  const std::size_t line_start = before.rfind('\n');
  const std::size_t column = before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1);
  return fmt::format("{}:{}:{}", file.string(), 1 + std::ranges::count(before, '\n'), 1 + column);
}

std::string read_file(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || text.empty()) {
    fail(ErrorKind::kInvalidJob, "{}:1:1: error: the file with the GPU's properties cannot be read: {}", file.string(),
         errno == 0 ? "it is empty" : std::strerror(errno));
  }
  return text;
}

void check_properties(const std::filesystem::path& file, const std::string& text) {
  nlohmann::json properties;
  try {
    properties = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    fail(ErrorKind::kInvalidJob, "{}: error: this is no JSON; tests/cudnn/h100.json is an example ({})",
         place(file, text, error.byte == 0 ? 0 : error.byte - 1), error.what());
  }
  if (!properties.is_object()) {
    fail(ErrorKind::kInvalidJob, "{}:1:1: error: expected one JSON object with the GPU's properties", file.string());
  }
  for (const auto& [name, form] : kProperties) {
    if (!properties.contains(name)) {
      fail(ErrorKind::kInvalidJob, "{}: error: {} is missing; cuDNN needs {} for it",
           place(file, text, text.find_last_not_of(" \r\n\t")), name, words(form));
    }
    const nlohmann::json& value = properties[name];
    if (!has_form(value, form)) {
      fail(ErrorKind::kInvalidJob, "{}: error: {} must be {} (got {})",
           place(file, text, text.find(fmt::format("\"{}\"", name))), name, words(form), value.dump());
    }
  }
}

}  // namespace

Descriptor read_device(const Library& library, const std::filesystem::path& file) {
  const std::string text = read_file(file);
  check_properties(file, text);
  Descriptor device(library, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  try {
    device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text);
    device.finalize();
  } catch (const CallFailed& error) {
    fail(ErrorKind::kInvalidJob,
         "{}: error: cuDNN {} refuses these properties; check deviceVer, which is 100 times the compute capability "
         "({})",
         place(file, text, text.find("\"deviceVer\"")), library.version(), error.what());
  }
  return device;
}

}  // namespace arbalest::tests::cudnn
