// The output of `arbalest evaluate --per-class` as tables and as JSON.
#pragma once

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "train/scores/class_scores.h"

namespace arbalest::jobs {

// In both functions `names` are those of the classes, by class; empty: the classes have none. The scores are those of
// scikit-learn's classification_report with labels=range(classes) and zero_division=0.

// A table with a row for each class: examples, precision, recall, F1, and the class that it is most often mistaken for.
// Their means follow, and with at most 20 classes the confusion matrix.
std::string class_report(const ClassScores& scores, std::span<const std::string> names);

// {"per_class": [{"class": 0, "name": "cat", "examples": ..., "accuracy": ..., "precision": ..., "recall": ...,
//                 "f1": ...}, ...],
//  "macro_mean": {"precision": ..., "recall": ..., "f1": ...}, "weighted_mean": {...},
//  "confusion_matrix": [[...], ...]}: rows are labels, columns are predicted classes. A name is null if there is none;
// "accuracy" is the recall, but null for a class without examples.
nlohmann::ordered_json to_json(const ClassScores& scores, std::span<const std::string> names);

}  // namespace arbalest::jobs
