#include "jobs/interchange/import/job_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "arbalest/v1/job.pb.h"
#include "engine/error.h"
#include "jobs/export/atomic_file.h"
#include "jobs/export/safetensors.h"
#include "jobs/interchange/import/onnx_file.h"
#include "jobs/interchange/import/onnx_import.h"
#include "jobs/options/load_job.h"
#include "jobs/options/text/text_format.h"
#include "jobs/report/output_directory.h"
#include "jobs/report/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

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

// The data that fits the model: only the names of files are left to the user.
v1::Data usual_data(const dataflow::InputDescription& input) {
  v1::Data data;
  if (input.has_ids()) {
    data.mutable_ratings()->set_directory("data");
    for (const std::int64_t size : input.ids) data.mutable_ratings()->add_sizes(static_cast<int>(size));
    return data;
  }
  const int channels = static_cast<int>(input.image[0]);
  const int height = static_cast<int>(input.image[1]);
  const int width = static_cast<int>(input.image[2]);
  const bool is_picture = (channels == 1 || channels == 3) && height * width > 1;
  if (is_picture) {
    v1::Images& images = *data.mutable_images();
    images.set_directory("data");
    images.set_classes(static_cast<int>(input.classes));
    images.mutable_decoding()->set_height(height);
    images.mutable_decoding()->set_width(width);
    if (channels != 3) images.mutable_decoding()->set_channels(channels);
    return data;
  }
  v1::Npy& arrays = *data.mutable_npy();
  arrays.set_directory("data");
  arrays.set_classes(static_cast<int>(input.classes));
  arrays.set_pixels(v1::Npy::FLOAT32);
  if (height == 1 && width == 1) {
    arrays.set_features(channels);
  } else {
    arrays.set_height(height);
    arrays.set_width(width);
    arrays.set_channels(channels);
  }
  return data;
}

v1::Job job_from(const std::string& path) {
  const SourceText source = read_job_file(path);
  load_job(path);  // reports all mistakes
  v1::Job job;
  parse_text(source, TextOutline(source, *v1::Job::descriptor()), job);
  return job;
}

v1::Job make_job(ImportedModel& model, const std::string& stem, const ImportOptions& options) {
  v1::Job job;
  if (!options.job.empty()) {
    job = job_from(options.job);
  } else {
    *job.mutable_data() = usual_data(model.input);
    job.mutable_learning_rate()->set_base(0.01);
    model.notes.push_back(
        "the file does not say where the data is and how it is normalized: set 'data' in job.txtpb, and its "
        "'normalization' as the model was trained; or import with --job JOB to take all settings from a job");
  }
  if (!job.has_name() || options.job.empty()) job.set_name(job_name(model.name.empty() ? stem : model.name));
  job.clear_model();
  for (v1::Layer& layer : model.layers) *job.mutable_model()->add_layers() = std::move(layer);
  job.clear_initialize();
  job.mutable_initialize()->set_from(kModelFile);
  return job;
}

// The directory with what has been written; removed again unless it is complete.
class NewDirectory {
 public:
  explicit NewDirectory(const fs::path& path) : directory_(path, "") {
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

ImportReport write_imported(ImportedModel model, const std::string& stem, const ImportOptions& options) {
  ImportReport report;
  report.layers = static_cast<std::int64_t>(model.layers.size()) - 1;
  for (const dataflow::NamedTensor& tensor : model.weights) report.parameters += tensor.shape.elements();
  const v1::Job job = make_job(model, stem, options);
  const std::string text = "# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n\n" +
                           print_text(job, *v1::Model::descriptor()->FindFieldByName("layers"));
  parse_job(
      SourceText((options.output / kJobFile).string(), text));  // whatever it cannot be, is told before it is written
  NewDirectory directory(options.output);
  std::map<std::string, std::string> metadata = std::move(model.metadata);
  metadata["format"] = "arbalest";
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
  try {
    imported = import_onnx(model);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}': {}", path.string(), error.what()));
  }
  return write_imported(std::move(imported), path.stem().string(), options);
}

}  // namespace arbalest::jobs
