// Cuts the backward pass of many random sequences of parameters into parts.
#include "dataflow/gradient_parts.h"

#include <algorithm>

#include "dataflow/input/batches/random_sequence.h"
#include "tests/support/catch.h"

namespace {

using arbalest::dataflow::gradient_parts;
using arbalest::dataflow::GradientPart;
using arbalest::dataflow::RandomSequence;

// A graph's nodes, some without parameters.
struct MadeUpNodes {
  std::vector<std::optional<std::int64_t>> first_element;  // by node
  std::vector<std::int64_t> elements;                      // by node
  std::int64_t trainable = 0;
};

MadeUpNodes make_nodes(std::uint64_t seed, std::int64_t largest) {
  constexpr std::uint64_t kMostNodes = 24;
  RandomSequence random(seed, 4, 0);
  MadeUpNodes nodes;
  const std::uint64_t count = random.below(kMostNodes);
  for (std::uint64_t n = 0; n < count; ++n) {
    const bool has_parameters = random.below(3) > 0;
    const auto elements =
        has_parameters ? 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(largest))) : 0;
    nodes.first_element.push_back(has_parameters ? std::optional(nodes.trainable) : std::nullopt);
    nodes.elements.push_back(elements);
    nodes.trainable += elements;
  }
  return nodes;
}

// Returns how many elements part number `part` needs before it is closed.
std::int64_t wanted_elements(std::size_t part, std::int64_t bytes) {
  const std::int64_t wanted = part == 0 ? bytes / 8 : bytes;
  return std::max<std::int64_t>((wanted + 3) / 4, 1);
}

void check_cover(const MadeUpNodes& nodes, const std::vector<GradientPart>& parts) {
  std::vector<int> runs(nodes.first_element.size(), 0);
  std::vector<int> reductions(static_cast<std::size_t>(nodes.trainable), 0);
  std::size_t next_node = nodes.first_element.size();
  for (const GradientPart& part : parts) {
    REQUIRE(part.last_node == next_node);  // parts run backward without a gap
    REQUIRE(part.first_node <= part.last_node);
    next_node = part.first_node;
    for (std::size_t n = part.first_node; n < part.last_node; ++n) {
      ++runs[n];
      if (!nodes.first_element[n]) continue;
      REQUIRE(*nodes.first_element[n] >= part.begin);  // the part contains its nodes' parameters
      REQUIRE(*nodes.first_element[n] + nodes.elements[n] <= part.end);
    }
    for (std::int64_t i = part.begin; i < part.end; ++i) ++reductions[static_cast<std::size_t>(i)];
    if (nodes.trainable > 0) REQUIRE(part.begin < part.end);
  }
  REQUIRE(std::ranges::all_of(runs, [](int count) { return count == 1; }));
  REQUIRE(std::ranges::all_of(reductions, [](int count) { return count == 1; }));
}

// Checks that each part is closed as soon as it is large enough.
void check_sizes(const MadeUpNodes& nodes, const std::vector<GradientPart>& parts, std::int64_t bytes) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const GradientPart& part = parts[p];
    const std::int64_t wanted = wanted_elements(p, bytes);
    const bool is_last = p + 1 == parts.size();
    if (!is_last) REQUIRE(part.end - part.begin >= wanted);
    for (std::size_t n = part.first_node + 1; n < part.last_node; ++n) {
      // The node of element 0 and the nodes before it always belong to the last part.
      if (nodes.first_element[n].value_or(0) > 0) REQUIRE(part.end - *nodes.first_element[n] < wanted);
    }
  }
}

}  // namespace

TEST_CASE("parts of the gradient cover each node and each element once, and are as large as asked for",
          "[gradient_parts]") {
  std::size_t most_parts = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    for (const std::int64_t largest : {1, 10, 3000}) {
      const MadeUpNodes nodes = make_nodes(seed, largest);
      for (const std::int64_t bytes : {1, 4, 33, 256, 4096, 1 << 30}) {  // some parameters are larger than a part
        CAPTURE(seed, largest, bytes);
        const auto parts = gradient_parts(nodes.first_element, nodes.trainable, bytes);
        check_cover(nodes, parts);
        check_sizes(nodes, parts, bytes);
        REQUIRE(gradient_parts(nodes.first_element, nodes.trainable, bytes) == parts);
        most_parts = std::max(most_parts, parts.size());
      }
      const auto whole = gradient_parts(nodes.first_element, nodes.trainable, 0);
      REQUIRE(whole == std::vector<GradientPart>{{0, nodes.first_element.size(), 0, nodes.trainable}});
    }
  }
  CHECK(most_parts > 10);
}

TEST_CASE("a parameter larger than a part is in a part of its own", "[gradient_parts]") {
  // The nodes have 10, no, 1000 and 10 elements.
  const std::vector<std::optional<std::int64_t>> first_element = {0, std::nullopt, 10, 1010};
  constexpr std::int64_t kBytes = 320;  // 80 elements; 10 in the first part
  CHECK(gradient_parts(first_element, 1020, kBytes) ==
        std::vector<GradientPart>{{3, 4, 1010, 1020}, {2, 3, 10, 1010}, {0, 2, 0, 10}});
}
