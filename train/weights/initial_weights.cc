#include "train/weights/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "dataflow/parameter_rules.h"
#include "engine/base/error.h"
#include "messages/nearest_path.h"
#include "messages/text.h"
#include "options/parameters/parameter_patterns.h"
#include "saved_model/run_files.h"
#include "saved_model/safetensors.h"
#include "train/weights/mismatches.h"

namespace arbalest::jobs {

namespace {

constexpr std::string_view kCounter = "num_batches_tracked";  // torch.nn.BatchNorm2d's

std::string file_of(const std::string& path) {
  std::error_code unknown;  // ignored: opening the file then fails, too, and says why
  if (!std::filesystem::is_directory(path, unknown)) return path;
  return (std::filesystem::path(path) / kModelFile).string();
}

bool is_counter(std::string_view name) {
  return name == kCounter || (name.ends_with(kCounter) && name[name.size() - kCounter.size() - 1] == '.');
}

// Throws if the file does not exist; the message points at the job and names what there is instead.
void check_exists(const InitializeOptions& options, const std::string& file) {
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) || unknown) return;  // opening the file fails, too, and says why
  const std::string problem = file == options.path ? fmt::format("'{}' does not exist{}", file, nearest_path_hint(file))
                                                   : fmt::format(
                                                         "the directory '{}' has no model.safetensors: the run has not "
                                                         "ended, or this is not the directory of a run",
                                                         options.path);
  throw engine::Error(engine::ErrorKind::kCheckpoint, options.error ? options.error(problem).what() : problem);
}

class Matcher {
 public:
  Matcher(const InitializeOptions& options, const dataflow::Graph& graph)
      : options_(options), renames_used_(options.renames.size(), false), ignores_used_(options.ignore.size(), false) {
    for (dataflow::NamedParameter& parameter : dataflow::named_parameters(graph)) {
      names_.push_back(parameter.name);
      shapes_.emplace(parameter.name, parameter.spec.shape);
    }
  }

  InitialWeights match() {
    weights_.path = file_of(options_.path);
    check_exists(options_, weights_.path);
    for (StoredTensor& stored : read_stored_tensors(weights_.path)) place(std::move(stored));
    for (const std::string& name : names_) {
      if (matches_any(options_.fresh, name)) {
        weights_.fresh.push_back(name);
      } else if (!sources_.contains(name)) {
        mismatches_.missing.push_back({name, shapes_.at(name)});
      }
    }
    find_unused("ignore", options_.ignore, ignores_used_);
    for (std::size_t i = 0; i < options_.renames.size(); ++i) {
      if (!renames_used_[i]) mismatches_.unused.push_back(unused("rename", options_.renames[i].from));
    }
    if (!mismatches_.empty()) engine::fail(engine::ErrorKind::kCheckpoint, "{}", describe(mismatches_, weights_.path));
    return std::move(weights_);
  }

 private:
  static std::string unused(const char* field, const NamePattern& pattern) {
    return fmt::format("initialize.{} \"{}\"", field, pattern.text());
  }

  void find_unused(const char* field, const std::vector<NamePattern>& patterns, const std::vector<bool>& used) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!used[i]) mismatches_.unused.push_back(unused(field, patterns[i]));
    }
  }

  bool is_ignored(const std::string& name) {
    bool ignored = false;
    for (std::size_t i = 0; i < options_.ignore.size(); ++i) {
      if (!options_.ignore[i].matches(name)) continue;
      ignores_used_[i] = true;
      ignored = true;
    }
    return ignored;
  }

  std::string renamed(const std::string& name) {
    for (std::size_t i = 0; i < options_.renames.size(); ++i) {
      const auto texts = options_.renames[i].from.match(name);
      if (!texts.has_value()) continue;
      renames_used_[i] = true;
      return fill_wildcards(options_.renames[i].to, *texts);
    }
    return name;
  }

  void place(StoredTensor stored) {
    const std::string of_file = stored.tensor.name;
    if (is_ignored(of_file) || is_counter(of_file)) {
      ++weights_.ignored;
      return;
    }
    const std::string name = renamed(of_file);
    const auto shape = shapes_.find(name);
    if (shape == shapes_.end()) {
      mismatches_.unexpected.push_back({of_file, stored.tensor.shape, name == of_file ? "" : name});
      return;
    }
    if (matches_any(options_.fresh, name)) {
      ++weights_.ignored;
      return;
    }
    const auto [source, is_first] = sources_.emplace(name, of_file);
    if (!is_first) {
      mismatches_.others.push_back(fmt::format("'{}' and '{}' both become '{}'", source->second, of_file, name));
    } else if (stored.tensor.shape != shape->second) {
      mismatches_.misshapen.push_back({name, stored.tensor.shape, shape->second});
    } else if (!stored.has_values()) {
      mismatches_.others.push_back(
          fmt::format("'{}' is of type {}; F32, F16 and BF16 can be read", of_file, stored.dtype));
    } else if (!std::ranges::all_of(stored.tensor.values, [](float value) { return std::isfinite(value); })) {
      mismatches_.others.push_back(fmt::format("'{}' has values that are not finite", of_file));
    } else {
      mismatches_.fitting.push_back(name);
      stored.tensor.name = name;
      weights_.tensors.push_back(std::move(stored.tensor));
    }
  }

  const InitializeOptions& options_;
  std::vector<std::string> names_;  // of the model's parameters, in their order
  std::map<std::string, engine::Shape> shapes_;
  std::map<std::string, std::string> sources_;  // by parameter: the tensor's name in the file
  std::vector<bool> renames_used_;
  std::vector<bool> ignores_used_;
  InitialWeights weights_;
  Mismatches mismatches_;
};

}  // namespace

std::string InitialWeights::text() const {
  constexpr std::size_t kShown = 4;
  std::string result = fmt::format("{} of {}", counted(static_cast<std::int64_t>(tensors.size()), "tensor"), path);
  for (std::size_t i = 0; i < std::min(fresh.size(), kShown); ++i) {
    result += fmt::format("{}{}", i == 0 ? ", fresh " : " ", fresh[i]);
  }
  if (fresh.size() > kShown) result += fmt::format(" and {} more", fresh.size() - kShown);
  if (ignored > 0) result += fmt::format(", {} ignored", ignored);
  return result;
}

InitialWeights read_initial_weights(const InitializeOptions& options, const dataflow::Graph& graph) {
  return Matcher(options, graph).match();
}

void load_initial_weights(const InitialWeights& weights, scheduler::Scheduler& scheduler) {
  std::vector<dataflow::NamedTensor> model = scheduler.snapshot(scheduler::Statistics::kAveraged);
  std::map<std::string, const dataflow::NamedTensor*> loaded;
  for (const dataflow::NamedTensor& tensor : weights.tensors) loaded.emplace(tensor.name, &tensor);
  for (dataflow::NamedTensor& tensor : model) {
    if (const auto found = loaded.find(tensor.name); found != loaded.end()) tensor.values = found->second->values;
  }
  scheduler.load(model);
}

}  // namespace arbalest::jobs
