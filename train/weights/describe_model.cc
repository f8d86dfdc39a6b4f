#include "train/weights/describe_model.h"

namespace arbalest::jobs {

namespace {

using Kind = DataOptions::Kind;

ModelDescription::Input input_of(const DataOptions& data) {
  if (data.input.has_ids()) return ModelDescription::Input::kIds;
  return data.kind == Kind::kNumbers ? ModelDescription::Input::kNumbers : ModelDescription::Input::kImage;
}

std::optional<int> resize_of(const DataOptions& data) {
  const bool are_encoded = data.kind == Kind::kImages || data.kind == Kind::kTfrecord;
  if (are_encoded || input_of(data) != ModelDescription::Input::kImage) return data.resize;
  const bool is_picture = data.input.image()[0] == 1 || data.input.image()[0] == 3;
  const bool is_square = data.input.image()[1] == data.input.image()[2] && data.input.image()[1] > 1;
  return is_picture && is_square ? std::optional(static_cast<int>(data.input.image()[1])) : std::nullopt;
}

}  // namespace

ModelDescription describe_model(const JobOptions& job, const std::vector<std::string>& class_names) {
  const DataOptions& data = job.data;
  const std::span<const std::int64_t> ids = data.input.ids();
  ModelDescription description{.job = job.name,
                               .input = input_of(data),
                               .shape = data.input.only_feature().shape,
                               .normalization = data.normalization,
                               .resize = resize_of(data),
                               .pixels = data.pixels,
                               .outputs = data.input.classes(),
                               .class_names = class_names,
                               .first_label = data.first_label,
                               .ids = {ids.begin(), ids.end()}};
  return description;
}

}  // namespace arbalest::jobs
