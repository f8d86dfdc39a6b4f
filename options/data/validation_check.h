// Checks whether a training set can be divided as a job asks, and whether a validation set of its own fits it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dataflow/input/derived/validation_split.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// With fewer examples in the validation set, a single one changes the accuracy by more than ten points.
inline constexpr std::int64_t kFewestValidationExamples = 10;

// Returns what is wrong with the rule for a training set with these class sizes, and the likely fix; "" if nothing is
// wrong. Each class that has examples needs some on both sides, and the validation set needs at least
// kFewestValidationExamples. A dataset without classes counts as one class.
std::string validation_problem(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes);

// Returns what is wrong with a validation set that has files of its own, by the same standards; "" if nothing is.
// `training`, `validation`: class sizes.
std::string own_validation_problem(std::span<const std::int64_t> training, std::span<const std::int64_t> validation);

// Returns the size of the validation set.
std::int64_t validation_size(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes);

// Returns a warning if only a model without errors reaches the target accuracy on so many examples; else "".
std::string validation_warning(const DataOptions& data, std::int64_t examples, const std::optional<double>& target);

}  // namespace arbalest::jobs
