#include "dataflow/memory/buffer_lifetimes.h"

#include <algorithm>

namespace arbalest::dataflow {

namespace {

class Finder {
 public:
  Finder(const Graph& graph, const std::vector<engine::Layout>& layouts,
         const std::vector<engine::OperatorTraits>& traits, const std::vector<bool>& forward, const Backward& backward,
         int kept)
      : graph_(graph),
        layouts_(layouts),
        traits_(traits),
        forward_(forward),
        backward_(backward),
        kept_(kept),
        last_use_(layouts.size(), 0) {}

  BufferLifetimes find() {
    const auto nodes = graph_.nodes().size();
    result_.value.assign(layouts_.size(), -1);
    result_.saved.assign(nodes, -1);
    result_.forward_scratch.assign(nodes, -1);
    result_.backward_scratch.assign(nodes, -1);
    find_last_uses();
    place_values();
    result_.gradients = place_gradients(graph_, layouts_, traits_, backward_, result_.lifetimes);
    place_workspaces();
    result_.bytes_without_reuse = bytes_without_reuse();
    return std::move(result_);
  }

 private:
  int forward_time(int node) const { return node; }
  int backward_time(int node) const { return 2 * static_cast<int>(graph_.nodes().size()) - 1 - node; }
  const Graph::Node& node(int n) const { return graph_.nodes()[static_cast<std::size_t>(n)]; }
  const engine::OperatorTraits& traits(int n) const { return traits_[static_cast<std::size_t>(n)]; }
  bool runs_backward(int n) const { return backward_.node[static_cast<std::size_t>(n)]; }
  int nodes() const { return static_cast<int>(graph_.nodes().size()); }
  bool runs(int n) const { return forward_[static_cast<std::size_t>(n)]; }
  bool in_arena(int n) const { return runs(n) && node(n).layer->role() == LayerRole::kHidden; }

  int add(std::size_t bytes, int first, int last) {
    result_.lifetimes.push_back({bytes, first, last});
    return static_cast<int>(result_.lifetimes.size()) - 1;
  }

  void find_last_uses() {
    const auto use = [&](int tensor, int time) {
      int& last = last_use_[static_cast<std::size_t>(tensor)];
      last = std::max(last, time);
    };
    if (kept_ != kNoTensor) use(kept_, backward_time(0));
    for (int n = 0; n < nodes(); ++n) {
      if (!runs(n)) continue;
      use(node(n).output, forward_time(n));
      if (runs_backward(n) && traits(n).backward_reads_output) use(node(n).output, backward_time(n));
      for (std::size_t k = 0; k < node(n).inputs.size(); ++k) {
        const int input = node(n).inputs[k];
        use(input, forward_time(n));
        const bool reads = traits(n).backward_reads_inputs && (k == 0 || !traits(n).backward_reads_first_input_only);
        if (runs_backward(n) && (reads || input == graph_.label())) use(input, backward_time(n));
      }
    }
  }

  const engine::Layout& layout(int tensor) const { return layouts_[static_cast<std::size_t>(tensor)]; }
  std::size_t bytes(int tensor) const { return layout(tensor).bytes(); }
  int last_use(int tensor) const { return last_use_[static_cast<std::size_t>(tensor)]; }

  // The input whose buffer the output can take over, because no node reads the input later; -1: none.
  int find_place(int n) const {
    if (!traits(n).in_place_forward) return -1;
    const int output = node(n).output;
    const std::size_t candidates = traits(n).symmetric_inputs ? node(n).inputs.size() : 1;
    for (std::size_t k = 0; k < candidates; ++k) {
      const int input = node(n).inputs[k];
      const bool fits = traits(n).symmetric_inputs ? layout(input) == layout(output) : bytes(input) == bytes(output);
      if (fits && input >= graph_.inputs() && last_use(input) == forward_time(n)) return input;
    }
    return -1;
  }

  void place_values() {
    for (int input = 0; input < graph_.inputs(); ++input) {
      result_.value[static_cast<std::size_t>(input)] = add(bytes(input), 0, last_use(input));
    }
    for (int n = 0; n < nodes(); ++n) {
      if (!in_arena(n)) continue;
      const int output = node(n).output;
      const int input = find_place(n);
      if (input >= 0) {
        const int shared = result_.value[static_cast<std::size_t>(input)];
        result_.value[static_cast<std::size_t>(output)] = shared;
        Lifetime& lifetime = result_.lifetimes[static_cast<std::size_t>(shared)];
        lifetime.last = std::max(lifetime.last, last_use(output));
      } else {
        result_.value[static_cast<std::size_t>(output)] = add(bytes(output), forward_time(n), last_use(output));
      }
    }
  }

  void place_workspaces() {
    for (int n = 0; n < nodes(); ++n) {
      if (!runs(n)) continue;
      const auto at = static_cast<std::size_t>(n);
      const int end = runs_backward(n) ? backward_time(n) : forward_time(n);
      if (traits(n).saved_bytes > 0) result_.saved[at] = add(traits(n).saved_bytes, forward_time(n), end);
      if (traits(n).scratch_bytes == 0) continue;
      result_.forward_scratch[at] = add(traits(n).scratch_bytes, forward_time(n), forward_time(n));
      if (runs_backward(n)) {
        result_.backward_scratch[at] = add(traits(n).scratch_bytes, backward_time(n), backward_time(n));
      }
    }
  }

  std::size_t bytes_without_reuse() const {
    std::size_t sum = 0;
    for (const Graph::Node& node : graph_.nodes()) {
      const auto output = static_cast<std::size_t>(node.output);
      if (result_.value[output] >= 0) sum += bytes(node.output);
      if (backward_.tensor_gradient[output]) sum += bytes(node.output);
    }
    return sum;
  }

  const Graph& graph_;
  const std::vector<engine::Layout>& layouts_;
  const std::vector<engine::OperatorTraits>& traits_;
  const std::vector<bool>& forward_;
  const Backward& backward_;
  int kept_;
  std::vector<int> last_use_;  // by tensor
  BufferLifetimes result_;
};

}  // namespace

BufferLifetimes find_lifetimes(const Graph& graph, const std::vector<engine::Layout>& layouts,
                               const std::vector<engine::OperatorTraits>& traits, const std::vector<bool>& forward,
                               const Backward& backward, int kept) {
  return Finder(graph, layouts, traits, forward, backward, kept).find();
}

}  // namespace arbalest::dataflow
