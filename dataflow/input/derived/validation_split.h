// Chooses the training examples that a job sets aside for validation. The choice depends on the labels, the fraction
// and the rule's own seed, not on the job's seed, the machine or the number of learners.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arbalest::dataflow {

struct ValidationRule {
  double fraction = 0.0;  // of the examples of each class, in (0, 0.5]
  std::uint64_t seed = 1;
};

// Returns how many of a class's `examples` validate: fraction * examples, rounded to the nearest integer, halves up.
std::int64_t validation_examples(const ValidationRule& rule, std::int64_t examples);

// Counts the examples of each of `classes` classes. Labels outside [0, classes) are not counted.
std::vector<std::int64_t> class_sizes(std::span<const std::int32_t> labels, std::int64_t classes);

// Returns the numbers of the validation examples, ascending. The examples of each class are ordered by
//   key(example) = split_mix(split_mix(seed) + example)      (random_sequence.h)
// and the first validation_examples() of them are taken. Examples whose label is outside [0, classes) stay in training.
// bench/peers/validation.py makes the same choice.
std::vector<std::int64_t> choose_validation(const ValidationRule& rule, std::span<const std::int32_t> labels,
                                            std::int64_t classes);

// Returns the numbers in [0, examples) that are not in `chosen`, which must ascend.
std::vector<std::int64_t> others(std::span<const std::int64_t> chosen, std::int64_t examples);

}  // namespace arbalest::dataflow
