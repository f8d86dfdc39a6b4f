// Answers one image at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/input/example.h"
#include "predict/described_model.h"
#include "predict/predictor.h"

namespace arbalest::jobs {

class LinePredictor {
 public:
  // Uses all cores of the first of the job's devices. `top`: most choices. Throws kUsage if the model does not read
  // images, and as SinglePredictor does. `model` must outlive the predictor.
  LinePredictor(const DescribedModel& model, int top);

  // Reads an image. The prediction has an error if that is not possible.
  Prediction predict(const std::string& path);

  // What the images have shown so far that the user should know.
  std::vector<std::string> warnings() const;

 private:
  const DescribedModel& model_;
  int top_;
  SinglePredictor predictor_;
  dataflow::Example example_;
  std::int64_t warned_ = 0;  // images
  std::string first_warning_;
};

}  // namespace arbalest::jobs
