#include "train/weights/saved_description.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "saved_model/safetensors.h"
#include "train/weights/describe_model.h"

namespace arbalest::jobs {

namespace {

std::string text_of(const Metadata& pairs, const char* name) {
  const auto found = pairs.find(name);
  return found == pairs.end() ? "none" : found->second;
}

// "shape [3, 32, 32] and not [1, 28, 28]", for each of the pairs that differ.
std::vector<std::string> differences(const Metadata& own, const Metadata& of_job,
                                     std::initializer_list<const char*> names) {
  std::vector<std::string> found;
  for (const char* name : names) {
    const std::string mine = text_of(own, name);
    const std::string other = text_of(of_job, name);
    if (mine != other) found.push_back(fmt::format("{} {} and not {}", name, mine, other));
  }
  return found;
}

// A saved model's metadata and what they describe.
std::pair<Metadata, std::optional<ModelDescription>> description_at(const std::string& path) {
  try {
    Metadata metadata = read_safetensors_metadata(path);
    std::optional<ModelDescription> description = description_in(metadata);
    return {std::move(metadata), std::move(description)};
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("'{}': {}", path, error.what()));
  }
}

}  // namespace

SavedDescription read_saved_description(const JobOptions& job, const std::string& path) {
  const ModelDescription expected = describe_model(job, job.data.class_names);
  auto [metadata, description] = description_at(path);
  if (!description) {
    SavedDescription follows{expected, {}};
    if (!has_present_rules(metadata)) follows.description.pixels = dataflow::kUnrecordedRules;
    return follows;
  }
  const Metadata own = to_metadata(*description);
  const Metadata of_job = to_metadata(expected);
  const std::vector<std::string> mismatches = differences(own, of_job, {"input", "shape", "outputs", "ids"});
  if (!mismatches.empty()) {
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "'{}' does not match the run's job.txtpb: {}; restore the original model or the original job.txtpb",
                 path, fmt::join(mismatches, ", "));
  }
  std::vector<std::string> others = differences(own, of_job, {"mean", "stddev", "resize"});
  // Older versions had no choice of pixels, so a model with their rules does not differ from its job's.
  if (description->pixels.luma == expected.pixels.luma) {
    for (std::string& text : differences(own, of_job, {"orientation", "jpeg"})) others.push_back(std::move(text));
  }
  // The names may come from the dataset, which is not read here.
  if (!job.data.class_names.empty() && job.data.class_names != description->class_names) {
    others.emplace_back("other class_names");
  }
  if (job.data.first_label != 0 && job.data.first_label != description->first_label) {
    others.push_back(fmt::format("first_label {} and not {}", description->first_label, job.data.first_label));
  }
  std::vector<std::string> warnings;
  if (!others.empty()) {
    warnings.push_back(
        fmt::format("'{}' has another preparation or labels than the run's job.txtpb: {}. The description in the model "
                    "is used, because the model was trained with it",
                    path, fmt::join(others, ", ")));
  }
  return {*std::move(description), std::move(warnings)};
}

std::string old_rules_note(const dataflow::PixelRules& rules, const std::string& what) {
  if (rules.luma != dataflow::PixelRules::Luma::kLibpng) return "";
  return fmt::format(
      "{} was saved by an older version, whose rules for image files still apply to it: gray by libpng's gamma, EXIF "
      "orientation {}, "
      "JPEG "
      "{}; train it again to use the current rules",
      what, rules.is_oriented ? "applied" : "ignored", rules.is_reduced ? "decoded at reduced size" : "decoded whole");
}

DataOptions data_as_trained(const DataOptions& data, const ModelDescription& description) {
  DataOptions trained = data;
  if (!data.input.has_ids()) trained.normalization = description.normalization;
  const bool are_encoded = data.kind == DataOptions::Kind::kImages || data.kind == DataOptions::Kind::kTfrecord;
  if (are_encoded) trained.resize = description.resize;
  trained.pixels = description.pixels;
  return trained;
}

}  // namespace arbalest::jobs
