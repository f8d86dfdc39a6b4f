// Whether a dataset's classes can be divided into a training and a validation set as a job wants it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "dataflow/input/validation_split.h"

namespace arbalest::jobs {

// What is wrong with the rule for a training set whose classes have these numbers of examples, with the likely fix; ""
// if nothing is. Each class that has examples needs some on both sides, and the validation set at least 10. One number:
// a dataset without classes.
std::string validation_problem(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes);

// How many examples of such a training set validate.
std::int64_t validation_size(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes);

// What the user should know of a validation set of so many examples; "" if nothing. `target`: of accuracy, if any.
std::string validation_warning(std::int64_t examples, const std::optional<double>& target);

}  // namespace arbalest::jobs
