// Simulates random graphs with branches on the arena of their memory plan. Every operator must find the values that it
// needs: no other operator may have overwritten them.
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "dataflow/input/batches/random_sequence.h"
#include "dataflow/layers/outputs/classification.h"
#include "dataflow/memory/buffer_lifetimes.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using namespace dataflow;
using engine::DType;
using engine::Layout;
using engine::OperatorTraits;
using engine::Shape;

// A layer of which only the number of inputs and the presence of parameters matter. All its tensors are [n, 3].
class FakeLayer final : public Layer {
 public:
  FakeLayer(int inputs, bool has_parameters) : inputs_(inputs), has_parameters_(has_parameters) {}
  std::string_view kind() const override { return "fake"; }
  int input_count() const override { return inputs_; }
  Shape output_shape(std::span<const Shape> inputs) const override { return {inputs[0][0], 3}; }
  std::vector<ParameterSpec> parameters(std::span<const Shape>) const override {
    std::vector<ParameterSpec> specs;
    if (has_parameters_) specs.push_back({"weight", {3}, {}, {}});
    return specs;
  }
  engine::OperatorSpec operator_spec(std::span<const Layout> inputs, std::uint32_t) const override {
    return engine::FlattenSpec{inputs[0]};
  }

 private:
  int inputs_;
  bool has_parameters_;
};

struct Problem {
  Graph graph;
  std::vector<Layout> layouts;         // by tensor
  std::vector<OperatorTraits> traits;  // by node
  std::vector<bool> forward;           // by node
  Backward backward;
};

// Layers read random earlier layers. A last layer joins the outputs that no layer reads.
Graph random_graph(RandomSequence& random) {
  std::vector<LayerDescription> layers{{"first", {"image"}, std::make_shared<FakeLayer>(1, true)}};
  std::vector<std::string> unread{"first"};
  const auto append = [&](std::vector<std::string> inputs, bool has_parameters) {
    for (const std::string& input : inputs) std::erase(unread, input);
    const auto count = static_cast<int>(inputs.size());
    layers.push_back({"layer" + std::to_string(layers.size()), std::move(inputs),
                      std::make_shared<FakeLayer>(count, has_parameters)});
    unread.push_back(layers.back().name);
  };
  const std::uint64_t count = 2 + random.below(12);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::vector<std::string> inputs;
    const std::uint64_t width = random.below(2) == 0 ? 1 : 1 + random.below(3);
    for (std::uint64_t k = 0; k < width; ++k) {
      // The input is mostly one of the last layers, sometimes the image.
      const std::uint64_t back = random.below(std::min<std::uint64_t>(layers.size(), 4));
      inputs.push_back(random.below(12) == 0 ? "image" : layers[layers.size() - 1 - back].name);
    }
    append(std::move(inputs), random.below(3) == 0);
  }
  while (unread.size() > 1) append({unread[0], unread[1]}, false);
  const std::size_t hidden = layers.size();
  for (std::uint64_t i = random.below(3); i > 0; --i) {
    const std::string logits = layers[random.below(hidden)].name;
    layers.push_back(
        {"side loss " + std::to_string(i), {logits, "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()});
  }
  append({unread[0]}, true);
  layers.push_back({"loss", {unread[0], "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()});
  return Graph::build(image_input({3, 1, 1}, 3), layers);
}

Layout random_layout(RandomSequence& random) {
  return {{1, 3}, DType::kFloat32, static_cast<std::size_t>(64 * (1 + random.below(2))), nullptr};
}

// Traits that an existing kind of operator could have.
OperatorTraits random_traits(RandomSequence& random, const std::vector<Layout>& inputs) {
  OperatorTraits traits;
  const auto coin = [&] { return random.below(2) == 0; };
  const std::uint64_t kind = random.below(5);
  traits.output = inputs[random.below(inputs.size())];
  if (inputs.size() > 1 && kind < 2) {  // a sum, with or without activation
    traits.symmetric_inputs = traits.in_place_forward = traits.in_place_backward = true;
    traits.passes_gradient = coin();
    traits.backward_reads_output = !traits.passes_gradient;
  } else if (inputs.size() == 2 && kind == 2) {  // batch norm that takes over a sum
    traits.output = inputs[0];
    traits.backward_reads_inputs = traits.backward_reads_first_input_only = traits.backward_reads_output = true;
    traits.in_place_backward = inputs[1] == inputs[0];
    traits.in_place_backward_input = 1;
  } else if (inputs.size() == 1 && kind == 0) {  // an elementwise operator
    traits.in_place_forward = traits.in_place_backward = true;
    traits.backward_reads_output = coin();
  } else if (inputs.size() == 1 && kind == 1) {  // a view of the same data
    traits.in_place_forward = traits.in_place_backward = traits.passes_gradient = true;
  } else {  // any other operator
    traits.output = random_layout(random);
    traits.backward_reads_inputs = coin();
    traits.backward_reads_output = coin();
    traits.overwrites_output_gradient = coin();
    traits.adds_to_gradient = coin();
  }
  traits.saved_bytes = 64 * random.below(2);
  traits.scratch_bytes = 64 * random.below(3);
  return traits;
}

Problem random_problem(std::uint64_t seed, bool training) {
  RandomSequence random(seed, 11, 0);
  Problem problem{random_graph(random), {random_layout(random), random_layout(random)}, {}, {}, {}};
  for (const Graph::Node& node : problem.graph.nodes()) {
    std::vector<Layout> inputs;
    for (const int input : node.inputs) inputs.push_back(problem.layouts[static_cast<std::size_t>(input)]);
    OperatorTraits traits;
    if (node.layer->role() == LayerRole::kHidden) {
      traits = random_traits(random, inputs);
    } else {
      traits.saved_bytes = traits.scratch_bytes = 64;
      traits.forward_writes_gradient = training && node.layer->role() == LayerRole::kLoss && random.below(2) == 0;
    }
    problem.layouts.push_back(traits.output);
    problem.traits.push_back(traits);
  }
  problem.backward = derive_backward(problem.graph);
  for (std::size_t n = 0; n < problem.traits.size(); ++n) {
    const int input = problem.graph.nodes()[n].inputs[0];
    problem.traits[n].forward_writes_gradient &= problem.backward.tensor_gradient[static_cast<std::size_t>(input)];
  }
  problem.forward.assign(problem.traits.size(), true);
  if (!training) {
    problem.forward = needed_at_inference(problem.graph);
    problem.backward.node.assign(problem.backward.node.size(), false);
    problem.backward.tensor_gradient.assign(problem.backward.tensor_gradient.size(), false);
  }
  return problem;
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const std::uint64_t word : {a, b, c}) {
    hash ^= word;
    hash *= 0xff51afd7ed558ccdU;
    hash ^= hash >> 32U;
  }
  return hash;
}

// The arena in cells of 64 bytes. Each cell holds the name of the value last written there.
class Simulation {
 public:
  Simulation(const Problem& of, const BufferLifetimes& buffers)
      : of_(of), buffers_(buffers), plan_(plan_memory(buffers.lifetimes)), cells_(plan_.bytes / 64, 0) {}

  // Returns the first error, or "" if there is none.
  std::string run() {
    for (int input = 0; input < of_.graph.inputs(); ++input) write(value(input), name_of_value(input));
    for (int n = 0; n < nodes(); ++n) {
      if (of_.forward[at(n)]) forward(n);
    }
    for (int n = nodes() - 1; n >= 0; --n) {
      if (of_.backward.node[at(n)]) backward(n);
    }
    return error_;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  int nodes() const { return static_cast<int>(of_.graph.nodes().size()); }
  const Graph::Node& node(int n) const { return of_.graph.nodes()[at(n)]; }
  const OperatorTraits& traits(int n) const { return of_.traits[at(n)]; }
  int value(int tensor) const { return buffers_.value[at(tensor)]; }
  static std::uint64_t name_of_value(int tensor) { return mix(1, static_cast<std::uint64_t>(tensor), 0); }
  static std::uint64_t name_of_saved(int n) { return mix(2, static_cast<std::uint64_t>(n), 0); }

  bool lie_alike(int a, int b) const { return of_.layouts[at(a)] == of_.layouts[at(b)]; }
  // Whether input k of a node may share the buffer of the node's output.
  bool may_share(int n, std::size_t k) const {
    return traits(n).symmetric_inputs ? lie_alike(node(n).inputs[k], node(n).output) : k == 0;
  }

  // The name of a tensor's complete gradient: the sum of its readers' contributions, derived from the graph alone.
  std::uint64_t name_of_gradient(int tensor) {
    if (const auto known = gradients_.find(tensor); known != gradients_.end()) return known->second;
    std::uint64_t sum = 0;
    for (int n = 0; n < nodes(); ++n) {
      for (std::size_t k = 0; k < node(n).inputs.size(); ++k) {
        if (of_.backward.node[at(n)] && node(n).inputs[k] == tensor) sum += contribution(n, k);
      }
    }
    return gradients_[tensor] = sum;
  }
  std::uint64_t contribution(int n, std::size_t k) {
    const bool is_loss = node(n).layer->role() == LayerRole::kLoss;
    const std::uint64_t arriving = is_loss ? 0 : name_of_gradient(node(n).output);
    const bool is_symmetric = traits(n).symmetric_inputs && may_share(n, k);
    if (traits(n).passes_gradient && (is_symmetric || (!traits(n).symmetric_inputs && k == 0))) return arriving;
    return mix(static_cast<std::uint64_t>(n) + 3, is_symmetric ? 99 : k, arriving);
  }

  template <typename Visit>
  void for_each_cell(int buffer, const Visit& visit) {
    const std::size_t first = plan_.offsets[at(buffer)] / 64;
    for (std::size_t cell = 0; cell < buffers_.lifetimes[at(buffer)].bytes / 64; ++cell) visit(cells_[first + cell]);
  }
  void write(int buffer, std::uint64_t what) {
    if (buffer >= 0) for_each_cell(buffer, [&](std::uint64_t& cell) { cell = what; });
  }
  void spoil(int buffer) { write(buffer, ++garbage_); }
  void expect(int buffer, std::uint64_t what, int n, const std::string& of) {
    if (buffer < 0) {
      fail(n, of + " has no place");
      return;
    }
    for_each_cell(buffer, [&](const std::uint64_t& cell) {
      if (cell != what) fail(n, of + " is spoilt");
    });
  }
  void fail(int n, const std::string& what) {
    if (error_.empty()) error_ = node(n).name + ": " + what;
  }

  // An operator may write its output and saved values before it reads its inputs, so these are spoilt first. Scratch
  // memory is spoilt before and after.
  void forward(int n) {
    spoil(buffers_.forward_scratch[at(n)]);
    spoil(buffers_.saved[at(n)]);
    const int output = value(node(n).output);
    bool in_place = false;
    for (std::size_t k = 0; k < node(n).inputs.size(); ++k) {
      in_place |= value(node(n).inputs[k]) == output && traits(n).in_place_forward && may_share(n, k);
    }
    if (!in_place) spoil(output);
    const bool writes_gradient = traits(n).forward_writes_gradient;
    if (writes_gradient) spoil(buffers_.gradients[at(n)].inputs[0].written);
    for (const int input : node(n).inputs) expect(value(input), name_of_value(input), n, "an input");
    if (writes_gradient) write(buffers_.gradients[at(n)].inputs[0].written, contribution(n, 0));
    write(output, name_of_value(node(n).output));
    write(buffers_.saved[at(n)], name_of_saved(n));
    spoil(buffers_.forward_scratch[at(n)]);
  }

  void backward(int n) {
    const NodeGradients& gradients = buffers_.gradients[at(n)];
    const bool is_loss = node(n).layer->role() == LayerRole::kLoss;
    if (gradients.copied_from >= 0) {
      expect(gradients.copied_from, name_of_gradient(node(n).output), n, "the output's gradient");
      write(gradients.output, name_of_gradient(node(n).output));
    }
    if (traits(n).forward_writes_gradient) {
      expect(gradients.inputs[0].written, contribution(n, 0), n, "the gradient that forward wrote");
      return sum(n);
    }
    spoil(buffers_.backward_scratch[at(n)]);
    const auto is_in_place = [&](std::size_t k) {
      return gradients.inputs[k].written == gradients.output && traits(n).in_place_backward &&
             (traits(n).symmetric_inputs ? may_share(n, k) : k == traits(n).in_place_backward_input);
    };
    const auto is_added = [&](std::size_t k) { return gradients.inputs[k].before >= 0 && gradients.inputs[k].sum < 0; };
    for (std::size_t k = 0; k < gradients.inputs.size(); ++k) {
      const InputGradient& of = gradients.inputs[k];
      if (is_added(k)) {
        if (k != 0 || !traits(n).adds_to_gradient) fail(n, "an operator is to add that cannot");
        if (of.written == of.before && of.before == gradients.output) fail(n, "a sum is written over what is read");
        expect(of.before, so_far_[node(n).inputs[k]], n, "the addend");
      }
      if (!is_in_place(k) && !(is_added(k) && of.written == of.before)) spoil(of.written);
    }
    if (!is_loss) expect(gradients.output, name_of_gradient(node(n).output), n, "the output's gradient");
    for (std::size_t k = 0; k < node(n).inputs.size(); ++k) {
      const int input = node(n).inputs[k];
      const bool reads = traits(n).backward_reads_inputs && (k == 0 || !traits(n).backward_reads_first_input_only);
      const bool is_read = reads || input == of_.graph.label();
      if (is_read) expect(value(input), name_of_value(input), n, "an input, in backward,");
    }
    if (traits(n).backward_reads_output) expect(value(node(n).output), name_of_value(node(n).output), n, "the output");
    if (buffers_.saved[at(n)] >= 0) expect(buffers_.saved[at(n)], name_of_saved(n), n, "what was saved");
    if (traits(n).overwrites_output_gradient) spoil(gradients.output);
    for (std::size_t k = 0; k < gradients.inputs.size(); ++k) {
      if (is_added(k)) {
        write(gradients.inputs[k].written, so_far_[node(n).inputs[k]] + contribution(n, k));
      } else if (!(is_in_place(k) && traits(n).passes_gradient)) {
        write(gradients.inputs[k].written, contribution(n, k));
      }
    }
    spoil(buffers_.backward_scratch[at(n)]);
    sum(n);
  }

  void sum(int n) {
    const NodeGradients& gradients = buffers_.gradients[at(n)];
    for (std::size_t k = 0; k < gradients.inputs.size(); ++k) {
      const int input = node(n).inputs[k];
      const bool is_wanted = of_.backward.tensor_gradient[at(input)];
      if (is_wanted != (gradients.inputs[k].written >= 0)) fail(n, "another gradient is made than is wanted");
    }
    // Each contribution must still be intact when it is added.
    for (std::size_t k = 0; k < gradients.inputs.size(); ++k) {
      const InputGradient& of = gradients.inputs[k];
      if (of.written < 0) continue;
      std::uint64_t& so_far = so_far_[node(n).inputs[k]];
      if (of.sum >= 0) {
        expect(of.written, contribution(n, k), n, "an input's gradient");
        expect(of.before, so_far, n, "the sum so far");
        write(of.sum, so_far + contribution(n, k));
      } else if (so_far != 0 && of.before < 0) {
        fail(n, "a contribution is not added");
      }
      so_far += contribution(n, k);
    }
  }

  const Problem& of_;
  const BufferLifetimes& buffers_;
  const MemoryPlan plan_;
  std::vector<std::uint64_t> cells_;
  std::map<int, std::uint64_t> gradients_;  // by tensor
  std::map<int, std::uint64_t> so_far_;     // by tensor: contributions of the readers that have run
  std::uint64_t garbage_ = 0;
  std::string error_;
};

BufferLifetimes lifetimes_of(const Problem& problem) {
  return find_lifetimes(problem.graph, problem.layouts, problem.traits, problem.forward, problem.backward);
}

TEST_CASE("no operator of a random graph reads a buffer that was overwritten") {
  int shared_gradients = 0;
  int sums = 0;
  int copies = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const Problem problem = random_problem(seed, seed % 8 != 0);
    const BufferLifetimes buffers = lifetimes_of(problem);
    CAPTURE(seed);
    REQUIRE(Simulation(problem, buffers).run() == "");
    for (const NodeGradients& node : buffers.gradients) {
      copies += node.copied_from >= 0 ? 1 : 0;
      for (const InputGradient& of : node.inputs) {
        shared_gradients += of.written >= 0 && of.written == node.output ? 1 : 0;
        sums += of.sum >= 0 ? 1 : 0;
      }
    }
  }
  // The random graphs contain every case that could fail.
  CHECK(shared_gradients > 1000);
  CHECK(sums > 1000);
  CHECK(copies > 100);
}

TEST_CASE("the simulation detects buffers that are reused too early") {
  int cut = 0;
  int found = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem problem = random_problem(seed, true);
    const BufferLifetimes buffers = lifetimes_of(problem);
    for (std::size_t b = 0; b < buffers.lifetimes.size(); ++b) {
      if (buffers.lifetimes[b].first == buffers.lifetimes[b].last) continue;
      BufferLifetimes shortened = buffers;
      shortened.lifetimes[b].last = buffers.lifetimes[b].last - 1;
      ++cut;
      found += Simulation(problem, shortened).run().empty() ? 0 : 1;
    }
  }
  CAPTURE(cut, found);
  CHECK(found > cut / 10);  // not every plan reuses the buffer that was freed too early
}

}  // namespace
}  // namespace arbalest::tests
