#include "dataflow/input/dataset.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace arbalest::dataflow {

std::string Dataset::record(std::int64_t example) const { return fmt::format("{}: example {}", name(), example); }

std::int32_t class_of(const Dataset& data, std::int64_t example) {
  ARBALEST_CHECK(!data.description().predicts_numbers());
  std::int32_t label = 0;
  data.read_label(example, {data.description().label(), &label});
  return label;
}

}  // namespace arbalest::dataflow
