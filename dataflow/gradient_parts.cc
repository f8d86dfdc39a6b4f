#include "dataflow/gradient_parts.h"

namespace arbalest::dataflow {

std::vector<GradientPart> gradient_parts(std::span<const std::optional<std::int64_t>> first_element,
                                         std::int64_t trainable, std::int64_t bytes) {
  constexpr std::int64_t kFirstPart = 8;  // the first part has 1/8 of `bytes`
  std::vector<GradientPart> parts;
  std::size_t last_node = first_element.size();
  std::int64_t end = trainable;
  for (std::size_t n = first_element.size(); bytes > 0 && n-- > 0;) {
    if (!first_element[n] || *first_element[n] == 0)
      continue;  // a node whose elements begin at 0 belongs to the last
                 // part
    const std::int64_t wanted = parts.empty() ? bytes / kFirstPart : bytes;
    const std::int64_t begin = *first_element[n];
    if ((end - begin) * static_cast<std::int64_t>(sizeof(float)) < wanted || begin == end) continue;
    parts.push_back({.first_node = n, .last_node = last_node, .begin = begin, .end = end});
    last_node = n;
    end = begin;
  }
  parts.push_back({.first_node = 0, .last_node = last_node, .begin = 0, .end = end});
  return parts;
}

}  // namespace arbalest::dataflow
