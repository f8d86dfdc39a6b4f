// Checks whether a training set can be divided as a job asks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dataflow/input/validation_split.h"

namespace arbalest::jobs {

// Returns what is wrong with the rule for a training set with these class sizes, and the likely fix; "" if nothing is
// wrong. Each class that has examples needs some on both sides, and the validation set needs at least 10. A dataset
// without classes counts as one class.
std::string validation_problem(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes);

// Returns the size of the validation set.
std::int64_t validation_size(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes);

// Returns a warning if only a model without errors reaches the target accuracy on so many examples; else "".
std::string validation_warning(std::int64_t examples, const std::optional<double>& target);

}  // namespace arbalest::jobs
