#include "interchange/import/job_writer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arbalest/v1/job.pb.h"
#include "engine/base/error.h"
#include "interchange/import/onnx_file.h"
#include "interchange/import/onnx_import.h"
#include "options/data/data_defaults.h"
#include "options/data/data_reader.h"
#include "options/loading/load_job.h"
#include "options/loading/parsed_job.h"
#include "options/text/text_format.h"
#include "report/output_directory.h"
#include "saved_model/atomic_file.h"
#include "saved_model/model_description.h"
#include "saved_model/run_files.h"
#include "saved_model/safetensors.h"
#include "train/weights/describe_model.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

constexpr const char* kDataDirectory = "data";

// Name of a job: letters, digits, '-', '_' and '.'.
std::string job_name(const std::string& text) {
  std::string name;
  for (const char letter : text) {
    const bool is_known = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.';
    name += is_known ? letter : '-';
  }
  while (name.starts_with('.')) name.erase(0, 1);
  return name.empty() ? "imported" : name;
}

void set_pictures(v1::Images& images, const dataflow::InputDescription& input, const ModelDescription* described) {
  images.set_directory(kDataDirectory);
  images.set_classes(static_cast<int>(input.classes()));
  images.mutable_decoding()->set_height(static_cast<int>(input.image()[1]));
  images.mutable_decoding()->set_width(static_cast<int>(input.image()[2]));
  if (input.image()[0] != 3) images.mutable_decoding()->set_channels(static_cast<int>(input.image()[0]));
  if (described != nullptr && described->resize) images.mutable_decoding()->set_resize(*described->resize);
}

void set_arrays(v1::Npy& arrays, const dataflow::InputDescription& input, bool has_numbers) {
  arrays.set_directory(kDataDirectory);
  arrays.set_classes(static_cast<int>(input.classes()));
  if (has_numbers) arrays.set_pixels(v1::Npy::FLOAT32);
  if (input.image()[1] == 1 && input.image()[2] == 1) {
    arrays.set_features(static_cast<int>(input.image()[0]));
  } else {
    arrays.set_height(static_cast<int>(input.image()[1]));
    arrays.set_width(static_cast<int>(input.image()[2]));
    arrays.set_channels(static_cast<int>(input.image()[0]));
  }
}

// The data that fits the model: only the names of files are left to the user. `described`: null if the file does not
// say what its input is.
v1::Data usual_data(const dataflow::InputDescription& input, const ModelDescription* described) {
  v1::Data data;
  if (input.has_ids()) {
    data.mutable_ratings()->set_directory(kDataDirectory);
    for (const std::int64_t size : input.ids()) data.mutable_ratings()->add_sizes(static_cast<int>(size));
    return data;
  }
  // One row of pixels is a signal.
  const bool is_picture = (input.image()[0] == 1 || input.image()[0] == 3) && input.image()[1] > 1;
  const bool has_numbers = described == nullptr ? !is_picture : described->input == ModelDescription::Input::kNumbers;
  if (is_picture && !has_numbers) {
    set_pictures(*data.mutable_images(), input, described);
  } else {
    set_arrays(*data.mutable_npy(), input, has_numbers);
  }
  if (described == nullptr) return data;
  const dataflow::Normalization& normalization = described->normalization;
  data.mutable_normalization()->mutable_mean()->Assign(normalization.mean.begin(), normalization.mean.end());
  data.mutable_normalization()->mutable_stddev()->Assign(normalization.stddev.begin(), normalization.stddev.end());
  for (const std::string& name : described->class_names) data.add_class_names(name);
  return data;
}

v1::Model model_message(const ImportedModel& model) {
  v1::Model message;
  message.mutable_layers()->Assign(model.layers.begin(), model.layers.end());
  return message;
}

// What the file says about its input and outputs. None if another program has written it.
std::optional<ModelDescription> description_of(const ImportedModel& model) {
  std::optional<ModelDescription> description = description_in(model.metadata);
  if (!description) return description;
  const bool fits =
      description->shape == model.input.only_feature().shape && description->outputs == model.input.classes();
  if (!fits) engine::fail(ErrorKind::kCheckpoint, "its metadata describe a model with another input or output");
  return description;
}

// `job`: the file that has chosen the data.
void check_data(const dataflow::InputDescription& given, const dataflow::InputDescription& input,
                const std::string& job) {
  // Tables may have more rows than there are ids.
  const bool fits = given.is_known() && given.only_feature().name == input.only_feature().name &&
                    given.only_feature().shape == input.only_feature().shape &&
                    given.predicts_numbers() == input.predicts_numbers() && given.classes() == input.classes();
  if (fits) return;
  const auto text = [](const dataflow::InputDescription& description) {
    if (!description.is_known()) return std::string("of another kind");
    const std::string label =
        description.predicts_numbers() ? "a number" : fmt::format("{} classes", description.classes());
    return fmt::format("{} of shape {} and {}", description.only_feature().name,
                       to_string(description.only_feature().shape), label);
  };
  engine::fail(ErrorKind::kInvalidJob,
               "{}: the model's examples are {}, but those of this job's data are {}; choose data that fit, or leave "
               "out --job",
               job, text(input), text(given));
}

std::string to_text(const std::optional<int>& resize) {
  return resize ? fmt::format("images whose shorter side is scaled to {}", *resize) : "images of the model's size";
}

// One name that differs tells enough: the lists may be long.
std::string differing_names(const ModelDescription& file, const ModelDescription& job) {
  if (job.class_names.empty())
    return fmt::format("class 0 is '{}' in the ONNX file, and the job has no class names", file.label(0));
  for (std::int64_t k = 0; k < file.outputs; ++k) {
    if (file.label(k) == job.label(k)) continue;
    return fmt::format("class {} is '{}' in the ONNX file and '{}' in the job", k, file.label(k), job.label(k));
  }
  return "";
}

// Whether the numbers are the same for every channel. A single number counts for all channels.
bool is_same(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t channel = 0; channel < std::max(a.size(), b.size()); ++channel) {
    if (a[std::min(channel, a.size() - 1)] != b[std::min(channel, b.size() - 1)]) return false;
  }
  return true;
}

// Notes what the file says about its input and classes, where the job says something else.
void note_differences(const ModelDescription& file, const JobOptions& options, const std::string& path,
                      std::vector<std::string>& notes) {
  const ModelDescription job = describe_model(options, options.data.class_names);
  std::vector<std::string> differences;
  const auto note = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    differences.push_back(fmt::format(format, std::forward<Args>(args)...));
  };
  if (file.input != ModelDescription::Input::kIds && file.input != job.input) {
    const bool reads_bytes = file.input == ModelDescription::Input::kImage;
    note("the input is {} in the ONNX file and {} in the job", reads_bytes ? "pixels of bytes" : "numbers",
         reads_bytes ? "numbers" : "pixels of bytes");
  }
  if (file.input != ModelDescription::Input::kIds && !(is_same(file.normalization.mean, job.normalization.mean) &&
                                                       is_same(file.normalization.stddev, job.normalization.stddev))) {
    note("mean {} and stddev {} in the ONNX file, mean {} and stddev {} in the job", file.normalization.mean,
         file.normalization.stddev, job.normalization.mean, job.normalization.stddev);
  }
  if (file.input == ModelDescription::Input::kImage && file.resize != job.resize) {
    note("the ONNX file reads {}, the job {}", to_text(file.resize), to_text(job.resize));
  }
  if (!file.class_names.empty() && file.class_names != job.class_names) note("{}", differing_names(file, job));
  if (differences.empty()) return;
  notes.push_back(fmt::format("the file describes its input and classes differently than '{}', which is used: {}", path,
                              fmt::join(differences, "; ")));
}

// The input that the job's data describe; unknown if they are missing or have mistakes.
dataflow::InputDescription input_of(const v1::Job& job, const std::string& path) {
  if (job.data().source_case() == v1::Data::SOURCE_NOT_SET) return {};
  v1::Data data = job.data();
  fill_defaults(data, path);
  dataflow::FieldIssues issues;
  const DataOptions options = read_data(data, issues);
  return issues.empty() ? options.input : dataflow::InputDescription();
}

// The job at `path` with the imported model. The job's own model and initial weights do not count: they may be missing,
// or not fit its data.
v1::Job job_from(const std::string& path, ImportedModel& model, const std::optional<ModelDescription>& description) {
  ParsedJob parsed(read_job_file(path));
  parsed.replace_model(model_message(model));
  const dataflow::InputDescription given = input_of(parsed.written(), path);
  if (given.is_known()) check_data(given, model.input, path);  // before layers that do not fit the data are
  const JobOptions options = parsed.read({});                  // reports all other mistakes
  check_data(options.data.input, model.input, path);
  for (std::string& warning : parsed.number_warnings()) model.notes.push_back(std::move(warning));
  if (description) note_differences(*description, options, path, model.notes);
  v1::Job job = parsed.written();
  make_directory_absolute(*job.mutable_data(), path);  // the new job lies elsewhere
  return job;
}

v1::Job make_job(ImportedModel& model, const std::optional<ModelDescription>& description, const std::string& stem,
                 const ImportOptions& options) {
  v1::Job job;
  if (!options.job.empty()) {
    job = job_from(options.job, model, description);
    model.metadata.clear();  // the job describes the input from now on
  } else {
    *job.mutable_data() = usual_data(model.input, description ? &*description : nullptr);
    job.mutable_learning_rate()->set_base(0.01);
    if (!description) {
      model.notes.push_back(
          "the file does not say how its input is normalized: set data.normalization in job.txtpb as the model was "
          "trained; or import with --job JOB to take all settings from a job");
    }
  }
  if (!job.has_name() || options.job.empty()) job.set_name(job_name(model.name.empty() ? stem : model.name));
  *job.mutable_model() = model_message(model);
  job.mutable_initialize()->set_from(kModelFile);
  return job;
}

// The directory with what has been written; removed again unless it is complete.
class NewDirectory {
 public:
  explicit NewDirectory(const fs::path& path) : directory_(path, "") {
    remove_partial_files(directory_.path());  // of an import that was killed
    std::error_code error;
    if (!fs::is_empty(directory_.path(), error) && !error) {
      engine::fail(ErrorKind::kUsage, "--output: '{}' is not empty; name a new directory", path.string());
    }
  }
  ~NewDirectory() {
    if (is_complete_) return;
    std::error_code ignored;  // an earlier error is on its way
    for (const char* file : {kModelFile, kSummaryFile, kJobFile}) fs::remove(directory_.path() / file, ignored);
  }
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  fs::path operator/(const char* file) const { return directory_.path() / file; }
  void complete() { is_complete_ = true; }

 private:
  OutputDirectory directory_;
  bool is_complete_ = false;
};

// Refuses a job that cannot be read before anything is written.
void check_job(const std::string& text, const fs::path& path) {
  try {
    parse_job(SourceText(kJobFile, text));
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}': nothing is written, because its job would be refused:\n{}",
                                                  path.string(), error.what()));
  }
}

void check_finite(const std::vector<dataflow::NamedTensor>& weights) {
  for (const dataflow::NamedTensor& tensor : weights) {
    if (std::ranges::all_of(tensor.values, [](float value) { return std::isfinite(value); })) continue;
    engine::fail(ErrorKind::kCheckpoint, "the weights of '{}' are not all finite", tensor.name);
  }
}

ImportReport write_imported(ImportedModel model, const std::optional<ModelDescription>& description,
                            const fs::path& path, const ImportOptions& options) {
  ImportReport report;
  report.layers = static_cast<std::int64_t>(model.layers.size()) - 1;
  for (const dataflow::NamedTensor& tensor : model.weights) report.parameters += tensor.shape.elements();
  const v1::Job job = make_job(model, description, path.stem().string(), options);
  const std::string text = "# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n\n" +
                           print_text(job, *v1::Model::descriptor()->FindFieldByName("layers"));
  check_job(text, path);
  NewDirectory directory(options.output);
  std::map<std::string, std::string> metadata = std::move(model.metadata);
  metadata["format"] = "arbalest";
  note_present_rules(metadata);
  const std::string hash = write_safetensors(directory / kModelFile, model.weights, metadata);
  const nlohmann::ordered_json summary = {{"status", "imported"}, {"model_sha256", hash}};
  write_file(directory / kSummaryFile, summary.dump(2) + "\n");
  write_file(directory / kJobFile, text);
  directory.complete();
  report.job = directory / kJobFile;
  report.notes = std::move(model.notes);
  return report;
}

}  // namespace

ImportReport import_model(const fs::path& path, const ImportOptions& options) {
  const onnx::Model model = read_onnx(path);
  ImportedModel imported;
  std::optional<ModelDescription> description;
  try {
    imported = import_onnx(model);
    check_finite(imported.weights);
    description = description_of(imported);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}': {}", path.string(), error.what()));
  }
  return write_imported(std::move(imported), description, path, options);
}

}  // namespace arbalest::jobs
