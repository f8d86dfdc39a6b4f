#include "train/data/dataset_verification.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "dataflow/input/example.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "engine/host/topology.h"
#include "messages/text.h"
#include "options/data/validation_check.h"
#include "options/sparse/graph_needed.h"
#include "saved_model/model_description.h"
#include "saved_model/run_files.h"
#include "saved_model/safetensors.h"
#include "train/data/class_names.h"
#include "train/data/dataset_loading.h"

namespace arbalest::jobs {

namespace {

// Returns the error of reading the example; "" if it can be read.
std::string problem_of(const dataflow::Dataset& data, std::int64_t example) {
  const dataflow::Example read(data.description());
  try {
    data.read(example, {}, read.features());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

SplitVerification verify(const dataflow::Dataset& data, engine::host::Pool& pool) {
  std::mutex mutex;
  std::map<std::int64_t, std::string> problems;  // by example; most sets have none
  pool.for_each(static_cast<std::size_t>(data.size()), [&](std::size_t i) {
    std::string problem = problem_of(data, static_cast<std::int64_t>(i));
    if (problem.empty()) return;
    const std::lock_guard lock(mutex);
    problems.emplace(static_cast<std::int64_t>(i), std::move(problem));
  });
  SplitVerification split{.name = data.name(), .examples = data.size(), .examples_of_class = {}, .problems = {}};
  const bool has_classes = !data.description().predicts_numbers();
  if (has_classes) split.examples_of_class.resize(static_cast<std::size_t>(data.description().classes()));
  for (std::int64_t example = 0; has_classes && example < data.size(); ++example) {
    if (!problems.contains(example)) ++split.examples_of_class[static_cast<std::size_t>(class_of(data, example))];
  }
  for (auto& [example, problem] : problems) split.problems.push_back(std::move(problem));
  return split;
}

// The class names of the model beside the job file of a run; empty if there is no such model, or if it names none.
std::vector<std::string> recorded_names(const std::filesystem::path& job_file) {
  const std::filesystem::path model = job_file.parent_path() / kModelFile;
  std::error_code error;
  if (job_file.empty() || !std::filesystem::is_regular_file(model, error)) return {};
  const std::optional<ModelDescription> description = description_in(read_safetensors_metadata(model));
  return description ? description->class_names : std::vector<std::string>();
}

// "class 3 is 'dog' in the data and 'cat' in the run's model.safetensors"; "" if all names are equal, or not known on
// one side.
std::string names_problem(const std::vector<std::string>& names, const std::vector<std::string>& recorded) {
  const std::size_t both = std::min(names.size(), recorded.size());
  for (std::size_t c = 0; c < both; ++c) {
    if (names[c] == recorded[c]) continue;
    return fmt::format(
        "class {} is '{}' in the data and '{}' in the run's {}: the class numbers no longer mean what they meant in "
        "training",
        c, names[c], recorded[c], kModelFile);
  }
  return "";
}

void verify_class_names(const JobOptions& job, const std::string& data_root, const std::filesystem::path& job_file,
                        DatasetVerification& result) {
  std::string problem;
  try {
    const std::vector<std::string> names = class_names_of_files(job.data, data_root);
    // Names that the job gives may be others than those of the files.
    if (job.data.class_names.empty()) problem = names_problem(names, recorded_names(job_file));
    result.classes = read_class_table(job.data, data_root, result.warnings);
  } catch (const engine::Error& error) {
    problem = error.what();
  }
  if (!problem.empty()) result.problems.push_back(problem);
}

// A copy of a published dataset may be smaller on purpose, so another number of examples is a warning.
void verify_size(const dataflow::Dataset& data, const std::optional<std::int64_t>& published,
                 DatasetVerification& result) {
  if (!published || *published == data.size()) return;
  result.warnings.push_back(
      fmt::format("{}: has {}, but the published set has {}; if the files are meant to be whole, "
                  "get them anew (arbalest data fetch)",
                  data.name(), counted(data.size(), "example"), grouped(*published)));
}

// The number of examples of the dataset's training files; none if only the files tell.
std::optional<std::int64_t> published_training_examples(const DataOptions& data) {
  if (!data.training_examples) return std::nullopt;
  return *data.training_examples + (data.validation ? data.validation_examples.value_or(0) : 0);
}

}  // namespace

bool DatasetVerification::is_sound() const {
  return problems.empty() &&
         std::ranges::all_of(splits, [](const SplitVerification& split) { return split.problems.empty(); });
}

DatasetVerification verify_dataset(const JobOptions& job, const std::string& data_root,
                                   const std::filesystem::path& job_file) {
  require_graph(job, "arbalest data verify");
  engine::host::Pool pool(engine::host::usable_cores());
  DatasetVerification result;
  DataOptions source = job.data;
  source.on_unreadable = dataflow::OnUnreadable::kSkip;  // so that all unreadable records are found, not only the first
  std::vector<dataflow::Split> splits = {dataflow::Split::kTrain, dataflow::Split::kTest};
  if (job.data.validation_files) splits.push_back(dataflow::Split::kValidation);
  std::vector<std::int64_t> training_classes;
  for (const dataflow::Split split : splits) {
    const auto data = load_dataset(source, data_root, split, pool, result.warnings, Decoding::kOnReading);
    result.splits.push_back(verify(*data, pool));
    for (std::string& text : data->warnings()) result.warnings.push_back(std::move(text));
    if (split == dataflow::Split::kTrain) {
      training_classes = class_sizes(*data);
      verify_size(*data, published_training_examples(job.data), result);
    }
    if (split == dataflow::Split::kTest) verify_size(*data, job.data.test_examples, result);
    if (split == dataflow::Split::kValidation) {
      std::string problem = own_validation_problem(training_classes, class_sizes(*data));
      if (!problem.empty()) result.problems.push_back(fmt::format("{}: {}", data->name(), problem));
    }
    const auto empty = std::ranges::count(result.splits.back().examples_of_class, 0);
    if (empty > 0) {
      result.warnings.push_back(fmt::format("{}: {} without an example", data->name(),
                                            empty == 1 ? "1 class is" : fmt::format("{} classes are", empty)));
    }
  }
  verify_class_names(job, data_root, job_file, result);
  return result;
}

std::string to_text(const SplitVerification& split) {
  std::string text = fmt::format("{}: {}", split.name, counted(split.examples, "example"));
  if (!split.examples_of_class.empty()) {
    const auto [least, most] = std::ranges::minmax(split.examples_of_class);
    text += fmt::format(", {} classes of {} to {}", split.examples_of_class.size(), grouped(least), grouped(most));
  }
  if (!split.problems.empty()) text += fmt::format("; {} cannot be read", grouped(std::ssize(split.problems)));
  return text;
}

}  // namespace arbalest::jobs
