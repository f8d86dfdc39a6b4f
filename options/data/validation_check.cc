#include "options/data/validation_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "messages/text.h"

namespace arbalest::jobs {

namespace {

// Returns the smallest fraction, rounded up to four digits, with which a class of `examples` gives `wanted` of them.
double fraction_for(std::int64_t wanted, std::int64_t examples) {
  const double least = (static_cast<double>(wanted) - 0.5) / static_cast<double>(examples);
  return std::ceil(1e4 * least) / 1e4;
}

// Returns the smallest fraction with which all classes together give kFewestValidationExamples examples; none if no
// fraction up to 0.5 does.
std::optional<double> fraction_for_fewest(std::span<const std::int64_t> class_sizes) {
  std::optional<double> least;
  for (const std::int64_t size : class_sizes) {
    for (std::int64_t wanted = 1; wanted <= std::min(kFewestValidationExamples, size / 2); ++wanted) {
      const double fraction = fraction_for(wanted, size);
      if (validation_size({fraction, 1}, class_sizes) < kFewestValidationExamples) continue;
      least = std::min(fraction, least.value_or(fraction));
    }
  }
  return least;
}

// "class 3, of 12 examples", or "the training set, of 12 examples" if there are no classes.
std::string class_text(std::size_t number, std::span<const std::int64_t> class_sizes) {
  const std::string examples = counted(class_sizes[number], "example");
  return class_sizes.size() == 1 ? fmt::format("the training set, of {}", examples)
                                 : fmt::format("class {}, of {}", number, examples);
}

}  // namespace

std::int64_t validation_size(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes) {
  std::int64_t examples = 0;
  for (const std::int64_t size : class_sizes) examples += dataflow::validation_examples(rule, size);
  return examples;
}

std::string validation_problem(const dataflow::ValidationRule& rule, std::span<const std::int64_t> class_sizes) {
  std::optional<std::size_t> worst;  // smallest class that cannot be divided
  std::int64_t all = 0;
  for (std::size_t c = 0; c < class_sizes.size(); ++c) {
    const std::int64_t size = class_sizes[c];
    all += size;
    const std::int64_t chosen = dataflow::validation_examples(rule, size);
    if (size == 0 || (chosen > 0 && chosen < size)) continue;
    if (!worst || size < class_sizes[*worst]) worst = c;
  }
  if (worst) {
    const std::string what = class_text(*worst, class_sizes);
    const std::int64_t size = class_sizes[*worst];
    if (size == 1) {
      return fmt::format("{}, cannot both train and validate: add examples to it, or leave it out of the data", what);
    }
    return fmt::format("fraction {} leaves {}, without a validation example; raise it: {} is enough", rule.fraction,
                       what, fraction_for(1, size));
  }
  const std::int64_t chosen = validation_size(rule, class_sizes);
  if (chosen >= kFewestValidationExamples) return "";
  const std::optional<double> enough = fraction_for_fewest(class_sizes);
  const std::string remedy = enough ? fmt::format("raise it: {} is enough", *enough)
                                    : fmt::format("remove validation: a training set of {} is too small to be divided",
                                                  counted(all, "example"));
  return fmt::format("fraction {} gives {} to validate with, fewer than the {} that a validation set needs; {}",
                     rule.fraction, counted(chosen, "example"), kFewestValidationExamples, remedy);
}

std::string own_validation_problem(std::span<const std::int64_t> training, std::span<const std::int64_t> validation) {
  std::int64_t all = 0;
  for (std::size_t c = 0; c < validation.size(); ++c) {
    all += validation[c];
    if (training[c] > 0 && validation[c] == 0) {
      return fmt::format("there is no example of class {}, of which the training set has {}; add some", c,
                         grouped(training[c]));
    }
    if (training[c] == 0 && validation[c] > 0) {
      return fmt::format("there are {} of class {}, of which the training set has none; remove them, or add some to it",
                         counted(validation[c], "example"), c);
    }
  }
  if (all >= kFewestValidationExamples) return "";
  return fmt::format("there are only {}, fewer than the {} that a validation set needs; add some",
                     counted(all, "example"), kFewestValidationExamples);
}

std::string validation_warning(const DataOptions& data, std::int64_t examples, const std::optional<double>& target) {
  if (!target || *target >= 1.0) return "";
  // Accuracy of a model with one wrong prediction.
  const double best_but_one = static_cast<double>(examples - 1) / static_cast<double>(examples);
  if (best_but_one >= *target) return "";
  return fmt::format(
      "data.validation: with {} to validate with, only a model without a single error reaches the target accuracy {}; "
      "{}",
      counted(examples, "example"), *target,
      data.validation_files ? "add examples to the validation set" : "raise data.validation.fraction");
}

}  // namespace arbalest::jobs
