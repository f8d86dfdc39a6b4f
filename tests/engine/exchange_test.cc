// Exchanges between the devices of a split model, and dropout on a block of columns, with numbers that are worked out
// by hand.
#include "engine/ops/exchange.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "engine/passes/step_parameters.h"
#include "engine/process/world.h"
#include "tests/support/catch.h"

namespace arbalest::engine {

namespace {

using Values = std::vector<float>;

constexpr int kRanks = 3;

ForwardOperands forward_of(std::span<const void* const> inputs, Values& output,
                           std::span<const void* const> parameters = {}) {
  ForwardOperands operands;
  operands.inputs = inputs;
  operands.output = output.data();
  operands.parameters = parameters;
  return operands;
}

BackwardOperands backward_of(Values& output_gradient, std::span<void* const> input_gradients,
                             std::span<void* const> parameter_gradients = {}) {
  BackwardOperands operands;
  operands.output_gradient = output_gradient.data();
  operands.input_gradients = input_gradients;
  operands.parameter_gradients = parameter_gradients;
  return operands;
}

// Several devices with a stream each. They may share a core.
class Ranks {
 public:
  Ranks() {
    const std::string name = "cpu:" + std::to_string(host::allowed_cores().front());
    for (int rank = 0; rank < kRanks; ++rank) {
      devices_.push_back(open_device(parse_device(name)));
      streams_.push_back(devices_.back()->create_stream({.name = "learner"}));
    }
    group_ = make_exchange(devices_, world_).front().group;
  }

  ExchangeGroup& group() { return *group_; }
  Stream& stream(int rank) { return *streams_[static_cast<std::size_t>(rank)]; }
  Device& device(int rank) { return *devices_[static_cast<std::size_t>(rank)]; }

  std::unique_ptr<Operator> prepare(int rank, ExchangeKind kind, const Shape& input, bool bias = false) {
    const Layout layout = device(rank).plain_layout(input, DType::kFloat32);
    return device(rank).prepare(ExchangeSpec{layout, kind, {group_, rank}, bias}, {});
  }

  // Runs an exchange on all ranks, forward or backward, and returns what each of them gets.
  std::vector<Values> run(ExchangeKind kind, const Shape& input, std::vector<Values> values, bool forward) {
    std::vector<std::unique_ptr<Operator>> operators;
    std::vector<Values> results;
    for (int rank = 0; rank < kRanks; ++rank) {
      operators.push_back(prepare(rank, kind, input));
      const Shape& output = operators.back()->traits().output.shape();
      results.emplace_back(static_cast<std::size_t>(forward ? output.elements() : input.elements()));
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (forward) {
        const void* inputs[] = {values[r].data()};
        operators[r]->forward(stream(rank), "exchange", forward_of(inputs, results[r]));
      } else {
        void* gradients[] = {results[r].data()};
        operators[r]->backward(stream(rank), "exchange backward", backward_of(values[r], gradients));
      }
    }
    for (int rank = 0; rank < kRanks; ++rank) stream(rank).record().synchronize();
    return results;
  }

 private:
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;
  process::World world_;
  std::shared_ptr<ExchangeGroup> group_;
};

// Two examples on each rank, with three columns: 100 rank + 10 example + column.
std::vector<Values> own_examples() {
  std::vector<Values> values;
  for (int rank = 0; rank < kRanks; ++rank) {
    const float r = 100.0F * static_cast<float>(rank);
    values.push_back({r, r + 1, r + 2, r + 10, r + 11, r + 12});
  }
  return values;
}

const Values kAllExamples = {0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112, 200, 201, 202, 210, 211, 212};

// Column `rank` of all examples.
std::vector<Values> columns() {
  return {{0, 10, 100, 110, 200, 210}, {1, 11, 101, 111, 201, 211}, {2, 12, 102, 112, 202, 212}};
}

// Sums over ranks of kAllExamples times 1, 2 and 3, by owner of the examples.
std::vector<Values> scaled_examples() {
  std::vector<Values> values(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    for (const float value : kAllExamples) {
      values[static_cast<std::size_t>(rank)].push_back(value * static_cast<float>(rank + 1));
    }
  }
  return values;
}

std::vector<Values> sixfold_own() {
  std::vector<Values> values = own_examples();
  for (Values& of_rank : values) {
    for (float& value : of_rank) value *= 6.0F;
  }
  return values;
}

}  // namespace

TEST_CASE("exchanges gather, add, and turn examples into columns and back", "[exchange]") {
  Ranks ranks;
  for (const bool forward : {true, false}) {
    CAPTURE(forward);
    // The backward pass of each kind is the forward pass of the opposite one.
    const ExchangeKind gather = forward ? ExchangeKind::kGather : ExchangeKind::kScatterSums;
    const ExchangeKind scatter = forward ? ExchangeKind::kScatterSums : ExchangeKind::kGather;
    const ExchangeKind to_columns = forward ? ExchangeKind::kToColumns : ExchangeKind::kToExamples;
    const ExchangeKind to_examples = forward ? ExchangeKind::kToExamples : ExchangeKind::kToColumns;
    const Shape own{2, 3};
    const Shape all{6, 3};
    const Shape narrow{6, 1};
    CHECK(ranks.run(gather, forward ? own : all, own_examples(), forward) == std::vector<Values>(kRanks, kAllExamples));
    CHECK(ranks.run(scatter, forward ? all : own, scaled_examples(), forward) == sixfold_own());
    CHECK(ranks.run(to_columns, forward ? own : narrow, own_examples(), forward) == columns());
    CHECK(ranks.run(to_examples, forward ? narrow : own, columns(), forward) == own_examples());
  }
  // Each rank has received from two others, both times: 6 floats, 6 floats, and twice 2 floats.
  for (int rank = 0; rank < kRanks; ++rank) CHECK(ranks.group().received_bytes(rank) == 2 * 2 * (6 + 6 + 2 + 2) * 4);
}

TEST_CASE("the bias of added outputs is added once, and its gradient is that of the own examples", "[exchange]") {
  Ranks ranks;
  const Values bias = {0.5F, -1.0F, 2.0F};
  std::vector<std::unique_ptr<Operator>> operators;
  const std::vector<Values> inputs = scaled_examples();
  std::vector<Values> outputs(kRanks, Values(6));
  std::vector<Values> bias_gradients(kRanks, Values(3, 77.0F));
  std::vector<Values> input_gradients(kRanks, Values(18));
  for (std::size_t r = 0; r < kRanks; ++r) {
    const int rank = static_cast<int>(r);
    operators.push_back(ranks.prepare(rank, ExchangeKind::kScatterSums, {6, 3}, true));
    const void* input[] = {inputs[r].data()};
    const void* parameters[] = {bias.data()};
    operators[r]->forward(ranks.stream(rank), "sum", forward_of(input, outputs[r], parameters));
    void* gradients[] = {input_gradients[r].data()};
    void* of_bias[] = {bias_gradients[r].data()};
    operators[r]->backward(ranks.stream(rank), "sum backward", backward_of(outputs[r], gradients, of_bias));
  }
  for (int rank = 0; rank < kRanks; ++rank) ranks.stream(rank).record().synchronize();
  std::vector<Values> expected = sixfold_own();
  for (std::size_t r = 0; r < kRanks; ++r) {
    for (std::size_t i = 0; i < 6; ++i) expected[r][i] += bias[i % 3];
    CHECK(outputs[r] == expected[r]);
    for (std::size_t c = 0; c < 3; ++c) CHECK(bias_gradients[r][c] == expected[r][c] + expected[r][c + 3]);
  }
}

TEST_CASE("ranks that have lost their common order are told so", "[exchange]") {
  Ranks ranks;
  const Values values(18);
  Values output(18);
  const std::vector<Shape> shapes = {{2, 3}, {2, 3}, {3, 2}};
  const std::vector<ExchangeKind> kinds = {ExchangeKind::kGather, ExchangeKind::kGather, ExchangeKind::kToExamples};
  std::vector<std::unique_ptr<Operator>> operators;
  const void* inputs[] = {values.data()};
  for (std::size_t r = 0; r < kRanks; ++r) {
    operators.push_back(ranks.prepare(static_cast<int>(r), kinds[r], shapes[r]));
    operators[r]->forward(ranks.stream(static_cast<int>(r)), "exchange", forward_of(inputs, output));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const Event event = ranks.stream(rank).record();
    CHECK_THROWS_AS(event.synchronize(), Error);
  }
}

TEST_CASE("dropout on a block of columns drops what it drops on whole mini-batches", "[exchange]") {
  constexpr std::int64_t kExamples = 5;
  constexpr std::int64_t kWidth = 7;  // not a multiple of the four elements that a counter gives
  constexpr std::uint64_t kFirstTask = 40;
  const auto device = open_device(parse_device("cpu"));
  const auto stream = device->create_stream({.name = "learner", .threads = 2});
  const auto masked = [&](const Shape& shape, std::uint64_t task, std::optional<ColumnBlock> block) {
    const auto op =
        device->prepare(DropoutSpec{device->plain_layout(shape, DType::kFloat32), 0.4F, 3, block}, {.threads = 2});
    const Values ones(static_cast<std::size_t>(shape.elements()), 1.0F);
    Values output(ones.size());
    const StepParameters step{.task = task, .seed = 9};
    const void* inputs[] = {ones.data()};
    ForwardOperands operands = forward_of(inputs, output);
    operands.step = &step;
    op->forward(*stream, "dropout", operands);
    stream->record().synchronize();
    return output;
  };
  std::vector<Values> whole;
  for (std::uint64_t task = 0; task < kRanks; ++task) {
    whole.push_back(masked({kExamples, kRanks * kWidth}, kFirstTask + task, std::nullopt));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const Values block =
        masked({kRanks * kExamples, kWidth}, kFirstTask + static_cast<std::uint64_t>(rank), ColumnBlock{rank, kRanks});
    for (std::int64_t row = 0; row < kRanks * kExamples; ++row) {
      for (std::int64_t column = 0; column < kWidth; ++column) {
        const std::int64_t at = row % kExamples * kRanks * kWidth + rank * kWidth + column;
        REQUIRE(block[static_cast<std::size_t>(row * kWidth + column)] ==
                whole[static_cast<std::size_t>(row / kExamples)][static_cast<std::size_t>(at)]);
      }
    }
  }
}

}  // namespace arbalest::engine
