#include "train/learners/learner_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "engine/backends/cuda_devices.h"
#include "engine/backends/devices.h"
#include "engine/backends/versions.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "options/throughput_key.h"
#include "saved_model/atomic_file.h"
#include "saved_model/sha256.h"
#include "train/session/memory_estimate.h"

namespace arbalest::jobs {

using nlohmann::ordered_json;

namespace {

constexpr const char* kFormat = "arbalest learners per device, 1";
constexpr std::size_t kMostBytes = std::size_t{64} << 10U;  // limit for a file; ours have about one KiB

class File {
 public:
  // Opens without blocking, whatever the path is: a pipe might have no writer.
  explicit File(const std::filesystem::path& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  bool is_regular() const {
    struct stat status {};
    return fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  }
  // Returns at most kMostBytes; none if the file has more or cannot be read.
  std::optional<std::string> text() const {
    std::string text(kMostBytes + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const ssize_t got = read(descriptor_, text.data() + size, text.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return std::nullopt;
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
    if (size > kMostBytes) return std::nullopt;
    text.resize(size);
    return text;
  }

 private:
  int descriptor_;
};

std::string hash(const std::string& text) {
  Sha256 sha;
  sha.update(std::as_bytes(std::span(text)));
  return sha.finish();
}

ordered_json describe(const engine::DeviceSpec& device) {
  if (device.is_cuda()) {
    const engine::CudaDeviceInfo gpu = engine::find_cuda_device(device);
    return {{"processor", gpu.name}, {"multiprocessors", gpu.multiprocessors}};
  }
  ordered_json cpu = {{"processor", engine::host::processor_name()},
                      {"cores", engine::core_count(device)},
                      {"pinned", !device.cores.empty()}};
  // Answers for all instructions of the processor stay valid.
  const std::vector<std::string> sets = engine::instruction_sets_in_force();
  if (sets != engine::host::instruction_sets()) cpu["instruction_sets"] = sets;
  return cpu;
}

// Reads the answer for `key` into `learners`. Returns what is wrong with the text, "" if nothing is.
std::string read_answer(const std::string& text, const ordered_json& key, std::vector<int>& learners) {
  const auto answer = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return "it is not JSON";
  const auto format = answer.find("format");
  if (format == answer.end() || *format != kFormat) return "it has another format";
  const auto of = answer.find("key");
  if (of == answer.end() || *of != key) return "it is of another job, machine or version";
  const auto counts = answer.find("learners_per_device");
  if (counts == answer.end() || !counts->is_array() || counts->size() != key["devices"].size()) {
    return "it does not have a number of learners for each device";
  }
  for (const ordered_json& count : *counts) {
    if (!count.is_number_integer() || count < 1 || count > kMostLearners) {
      return fmt::format("{} is no number of learners", count.dump());
    }
    learners.push_back(count.get<int>());
  }
  return "";
}

}  // namespace

LearnerCache::LearnerCache(std::filesystem::path directory, std::string program_version)
    : directory_(std::move(directory)), program_version_(std::move(program_version)) {}

ordered_json LearnerCache::key_of(const JobOptions& job) const {
  ordered_json key = throughput_key(job);
  key["model"] = hash(key["model"].get<std::string>());  // a key may have thousands of lines
  key["devices"] = ordered_json::array();
  for (const engine::DeviceSpec& device : job.devices) key["devices"].push_back(describe(device));
  if (job.tuned && job.tuned->objective == TuningObjective::kGoodput) key["objective"] = "GOODPUT";
  key["arbalest"] = program_version_;
  for (const auto& library : engine::library_versions()) key["libraries"][library.name] = library.version;
  return key;
}

std::filesystem::path LearnerCache::file_of(const ordered_json& key) const {
  return directory_ / (hash(key.dump()).substr(0, 32) + ".json");
}

std::filesystem::path LearnerCache::file_of(const JobOptions& job) const { return file_of(key_of(job)); }

std::optional<std::vector<int>> LearnerCache::find(const JobOptions& job, std::vector<std::string>& warnings) const {
  const ordered_json key = key_of(job);
  const std::filesystem::path path = file_of(key);
  const auto ignore = [&](const std::string& problem) -> std::optional<std::vector<int>> {
    // An answer that was written here in the meantime is removed, too; the next search then begins elsewhere.
    const std::string outcome =
        unlink(path.c_str()) == 0 ? "has been removed" : fmt::format("cannot be removed ({})", std::strerror(errno));
    warnings.push_back(fmt::format(
        "'{}' should say where `arbalest tune` ended, but {}: it is ignored and {}; the next `arbalest tune` "
        "of this job writes it anew",
        path.string(), problem, outcome));
    return std::nullopt;
  };
  const File file(path);
  if (!file.is_open() && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  if (!file.is_open()) return ignore(fmt::format("it cannot be read ({})", std::strerror(errno)));
  if (!file.is_regular()) return ignore("it is no file");
  const std::optional<std::string> text = file.text();
  if (!text) return ignore("it cannot be read, or is too long");
  std::vector<int> learners;
  const std::string problem = read_answer(*text, key, learners);
  if (!problem.empty()) return ignore(problem);
  return learners;
}

void LearnerCache::remember(const JobOptions& job, const std::vector<int>& learners_per_device,
                            double images_per_second) const {
  const ordered_json key = key_of(job);
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) fail_write(directory_, error.value());
  const ordered_json answer = {{"format", kFormat},
                               {"learners_per_device", learners_per_device},
                               {"images_per_second", images_per_second},
                               {"job", job.name},
                               {"key", key}};
  write_file(file_of(key), answer.dump(2) + "\n");
}

}  // namespace arbalest::jobs
