// The output of `arbalest evaluate --per-class` as tables and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "jobs/run/scores/class_scores.h"

namespace arbalest::jobs {

// A table with a row for each class: examples, accuracy, precision, and the class that it is most often mistaken for.
// With at most 20 classes, the confusion matrix follows.
std::string class_report(const ClassScores& scores);

// {"per_class": [{"class": 0, "examples": ..., "accuracy": ..., "precision": ...}, ...],
//  "confusion_matrix": [[...], ...]}: rows are labels, columns are predicted classes.
nlohmann::ordered_json to_json(const ClassScores& scores);

}  // namespace arbalest::jobs
