#include "predict/line_predictor.h"

#include <fmt/format.h>

#include "messages/text.h"
#include "predict/prediction_input.h"

namespace arbalest::jobs {

LinePredictor::LinePredictor(const DescribedModel& model, int top)
    : model_(model),
      top_(top),
      predictor_(model.job, model.tensors, engine::core_count(model.job.devices.front())),
      example_(input_of(model.description)) {
  open_files(model.description, {});  // throws if the model does not read images
}

Prediction LinePredictor::predict(const std::string& path) {
  const PredictionInput input = open_files(model_.description, {path});
  input.data->read(0, {}, example_.features());
  for (const std::string& text : input.data->warnings()) {
    if (warned_++ == 0) first_warning_ = text;
  }
  if (std::string error = input.data->take_error(0); !error.empty()) {
    Prediction prediction;
    prediction.error = std::move(error);
    return prediction;
  }
  return predictor_.predict(example_.features(), top_);
}

std::vector<std::string> LinePredictor::warnings() const {
  if (warned_ == 0) return {};
  if (warned_ == 1) return {first_warning_};
  return {fmt::format("{}; the same for {} more", first_warning_, counted(warned_ - 1, "image"))};
}

}  // namespace arbalest::jobs
