#include "dataflow/input/derived/validation_split.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dataflow/input/batches/random_sequence.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

std::int64_t validation_examples(const ValidationRule& rule, std::int64_t examples) {
  // One product and no sum, so that no compiler can contract it and every program computes the same number.
  return std::llround(rule.fraction * static_cast<double>(examples));
}

std::vector<std::int64_t> class_sizes(std::span<const std::int32_t> labels, std::int64_t classes) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) {
    if (label >= 0 && label < classes) ++sizes[static_cast<std::size_t>(label)];
  }
  return sizes;
}

std::vector<std::int64_t> choose_validation(const ValidationRule& rule, std::span<const std::int32_t> labels,
                                            std::int64_t classes) {
  ARBALEST_CHECK(rule.fraction > 0.0 && rule.fraction <= 0.5);
  const std::uint64_t start = split_mix(rule.seed);
  using Keyed = std::pair<std::uint64_t, std::int64_t>;  // key, example
  std::vector<std::vector<Keyed>> of_class(static_cast<std::size_t>(classes));
  for (std::size_t example = 0; example < labels.size(); ++example) {
    const std::int32_t label = labels[example];
    if (label < 0 || label >= classes) continue;
    of_class[static_cast<std::size_t>(label)].emplace_back(split_mix(start + example),
                                                           static_cast<std::int64_t>(example));
  }
  std::vector<std::int64_t> chosen;
  for (std::vector<Keyed>& examples : of_class) {
    const std::int64_t count = validation_examples(rule, std::ssize(examples));
    std::ranges::nth_element(examples, examples.begin() + count);  // keys are distinct: split_mix is a bijection
    for (std::int64_t i = 0; i < count; ++i) chosen.push_back(examples[static_cast<std::size_t>(i)].second);
  }
  std::ranges::sort(chosen);
  return chosen;
}

std::vector<std::int64_t> others(std::span<const std::int64_t> chosen, std::int64_t examples) {
  std::vector<std::int64_t> rest;
  rest.reserve(static_cast<std::size_t>(examples - std::ssize(chosen)));
  auto next = chosen.begin();
  for (std::int64_t example = 0; example < examples; ++example) {
    if (next != chosen.end() && *next == example) {
      ++next;
    } else {
      rest.push_back(example);
    }
  }
  return rest;
}

}  // namespace arbalest::dataflow
