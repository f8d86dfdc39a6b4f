#include "dataflow/memory/gradient_buffers.h"

#include <algorithm>
#include <set>
#include <span>

#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<engine::Layout>& layouts,
         const std::vector<engine::OperatorTraits>& traits, const Backward& backward, std::vector<Lifetime>& lifetimes)
      : graph_(graph),
        layouts_(layouts),
        traits_(traits),
        backward_(backward),
        lifetimes_(lifetimes),
        place_(layouts.size(), -1) {}

  std::vector<NodeGradients> place() {
    std::vector<NodeGradients> result(graph_.nodes().size());
    for (std::size_t n = result.size(); n-- > 0;) {
      if (!backward_.node[n]) continue;
      now_ = time_of(static_cast<int>(n));
      result[n] = place_node(graph_.nodes()[n], traits_[n]);
      if (traits_[n].forward_writes_gradient) {
        lifetimes_[at(result[n].inputs[0].written)].first = static_cast<int>(n);  // the time of its forward pass
      }
    }
    return result;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  int time_of(int node) const { return 2 * static_cast<int>(graph_.nodes().size()) - 1 - node; }
  std::size_t bytes(int tensor) const { return layouts_[at(tensor)].bytes(); }

  int add_buffer(std::size_t bytes) {
    lifetimes_.push_back({bytes, now_, now_});
    return static_cast<int>(lifetimes_.size()) - 1;
  }

  // The buffer of the contributions to a tensor's gradient so far, which is read now; -1: there are none yet.
  int read(int tensor) {
    const int buffer = place_[at(tensor)];
    if (buffer >= 0) lifetimes_[at(buffer)].last = now_;
    return buffer;
  }

  // A tensor's gradient is in `buffer` from now on, until its producer has read it.
  void hold(int tensor, int buffer) {
    release(tensor);
    place_[at(tensor)] = buffer;
    holders_.insert({buffer, tensor});
  }
  void release(int tensor) { holders_.erase({place_[at(tensor)], tensor}); }
  // Whether no tensor except possibly `tensor` still needs the contents of `buffer`.
  bool is_free(int buffer, int tensor) const {
    return std::ranges::all_of(holders_,
                               [&](const Holder& held) { return held.buffer != buffer || held.tensor == tensor; });
  }

  NodeGradients place_node(const Graph::Node& node, const engine::OperatorTraits& traits) {
    NodeGradients result;
    result.output = read(node.output);
    ARBALEST_CHECK((result.output < 0) == (node.layer->role() == LayerRole::kLoss));
    release(node.output);  // no node reads it later
    if (traits.overwrites_output_gradient && !is_free(result.output, node.output)) {
      result.copied_from = result.output;
      result.output = add_buffer(bytes(node.output));
    }
    place_contributions(node, traits, result);
    std::vector<std::size_t> later;  // inputs that have a gradient already
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      if (result.inputs[k].written < 0) continue;
      if (place_[at(node.inputs[k])] < 0 || result.inputs[k].before >= 0) {
        hold(node.inputs[k], result.inputs[k].written);
      } else {
        later.push_back(k);
      }
    }
    for (std::size_t i = 0; i < later.size(); ++i) {
      place_sum(node.inputs[later[i]], std::span(later).subspan(i + 1), result, result.inputs[later[i]]);
    }
    return result;
  }

  // Chooses where the operator writes.
  void place_contributions(const Graph::Node& node, const engine::OperatorTraits& traits, NodeGradients& result) {
    const bool has_output = result.output >= 0;
    const bool may_write = has_output && is_free(result.output, node.output);
    const bool in_place = has_output && traits.in_place_backward && (traits.passes_gradient || may_write);
    int of_symmetric = in_place ? result.output : -1;  // the buffer that the gradients of symmetric inputs share
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const int input = node.inputs[k];
      InputGradient& gradient = result.inputs.emplace_back();
      if (!backward_.tensor_gradient[at(input)]) continue;
      const bool is_symmetric = traits.symmetric_inputs && layouts_[at(input)] == layouts_[at(node.output)];
      if (is_symmetric) {
        if (of_symmetric < 0) of_symmetric = add_buffer(bytes(input));
        gradient.written = of_symmetric;
      } else if (k == traits.in_place_backward_input && in_place && !traits.symmetric_inputs) {
        gradient.written = result.output;
      } else if (k == 0 && traits.adds_to_gradient && place_[at(input)] >= 0) {
        gradient.before = read(input);
        const bool is_in_place = gradient.before != result.output && is_free(gradient.before, input);
        gradient.written = is_in_place ? gradient.before : add_buffer(bytes(input));
      } else {
        gradient.written = add_buffer(bytes(input));
      }
    }
  }

  // `later`: inputs of the node whose contributions are added after this one's.
  void place_sum(int tensor, std::span<const std::size_t> later, const NodeGradients& node, InputGradient& gradient) {
    gradient.before = read(tensor);
    const auto may_write = [&](int buffer) {
      return is_free(buffer, tensor) &&
             std::ranges::none_of(later, [&](std::size_t k) { return node.inputs[k].written == buffer; });
    };
    if (may_write(gradient.before)) {
      gradient.sum = gradient.before;
    } else {
      gradient.sum = may_write(gradient.written) ? gradient.written : add_buffer(bytes(tensor));
    }
    hold(tensor, gradient.sum);
  }

  struct Holder {
    int buffer;
    int tensor;
    auto operator<=>(const Holder&) const = default;
  };

  const Graph& graph_;
  const std::vector<engine::Layout>& layouts_;
  const std::vector<engine::OperatorTraits>& traits_;
  const Backward& backward_;
  std::vector<Lifetime>& lifetimes_;
  std::vector<int> place_;    // by tensor: the buffer of the contributions to its gradient so far
  std::set<Holder> holders_;  // gradients that are still to be read
  int now_ = 0;
};

}  // namespace

std::vector<NodeGradients> place_gradients(const Graph& graph, const std::vector<engine::Layout>& layouts,
                                           const std::vector<engine::OperatorTraits>& traits, const Backward& backward,
                                           std::vector<Lifetime>& lifetimes) {
  return Placer(graph, layouts, traits, backward, lifetimes).place();
}

}  // namespace arbalest::dataflow
