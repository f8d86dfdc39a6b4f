// Writes predictions as lines of text. Other programs read the names of fields and columns; do not rename them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "predict/prediction.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

enum class PredictionFormat {
  kJsonl,  // {"file": "a.png", "top": [{"label": "cat", "output": 3, "probability": 0.93}]}
  kCsv,    // RFC 4180, with a header line and one row for each example
  kText    // a.png: cat 0.93, dog 0.04
};

class PredictionText {
 public:
  // `top`: most choices of a prediction. `has_files`: whether examples are files; else they are numbered. `description`
  // must outlive it.
  PredictionText(const ModelDescription& description, PredictionFormat format, int top, bool has_files);

  // The line before all others, with its line break; "" if the format has none.
  std::string header() const;
  // One line, with its line break. `source`: the file or the number of the example. Bytes of a name that are not UTF-8
  // become U+FFFD in JSON and CSV; the text has '?' for those. Text and CSV have '?' for control characters.
  std::string line(std::string_view source, const Prediction& prediction) const;

 private:
  std::string json(std::string_view source, const Prediction& prediction) const;
  std::string csv(std::string_view source, const Prediction& prediction) const;
  std::string text(std::string_view source, const Prediction& prediction) const;
  bool predicts_numbers() const { return description_.input == ModelDescription::Input::kIds; }

  const ModelDescription& description_;
  PredictionFormat format_;
  int choices_;
  bool has_files_;
};

}  // namespace arbalest::jobs
