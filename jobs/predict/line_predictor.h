// Answers one image at a time.
#pragma once

#include <string>

#include "dataflow/input/example.h"
#include "jobs/predict/described_model.h"
#include "jobs/predict/predictor.h"

namespace arbalest::jobs {

class LinePredictor {
 public:
  // Uses all cores of the first of the job's devices. `top`: most choices. Throws kUsage if the model does not read
  // images, and as SinglePredictor does. `model` must outlive the predictor.
  LinePredictor(const DescribedModel& model, int top);

  // Reads an image. The prediction has an error if that is not possible.
  Prediction predict(const std::string& path);

 private:
  const DescribedModel& model_;
  int top_;
  SinglePredictor predictor_;
  dataflow::Example example_;
};

}  // namespace arbalest::jobs
