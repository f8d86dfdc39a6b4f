#include "interchange/import/onnx_file.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "engine/base/error.h"
#include "interchange/import/external_data.h"
#include "interchange/import/formulas/formulas.h"
#include "interchange/import/graph/constant.h"
#include "saved_model/regular_file.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<int>::max();  // protobuf's limit

void check_versions(const onnx::Model& model) {
  if (!model.has_graph() || !model.has_ir_version()) {
    engine::fail(ErrorKind::kCheckpoint, "it is not an ONNX model: it has no {}",
                 model.has_graph() ? "version" : "graph");
  }
  for (const onnx::OperatorSet& set : model.opset_import()) {
    const bool is_standard = set.domain().empty() || set.domain() == "ai.onnx";
    if (!is_standard || set.version() <= kNewestOperatorSet) continue;
    engine::fail(ErrorKind::kInvalidJob,
                 "it uses operator set {}, and this program knows those up to {}; export the model with "
                 "opset_version={}",
                 set.version(), kNewestOperatorSet, 17);
  }
}

// Puts each node behind the nodes that it reads.
class Sorter {
 public:
  explicit Sorter(const onnx::Graph& graph) : graph_(graph) {
    for (int n = 0; n < graph.node_size(); ++n) {
      for (const std::string& output : graph.node(n).output()) define(output, n);
    }
    state_.resize(static_cast<std::size_t>(graph.node_size()), State::kNew);
  }

  std::vector<int> sort() {
    for (int n = 0; n < graph_.node_size(); ++n) visit(n);
    return std::move(order_);
  }

 private:
  enum class State { kNew, kOpen, kDone };

  void define(const std::string& value, int node) {
    if (value.empty()) return;
    if (!writers_.emplace(value, node).second) {
      engine::fail(ErrorKind::kCheckpoint, "two nodes write the value '{}'", value);
    }
  }

  // Depth first, without recursion: a file may hold a chain of any length.
  void visit(int first) {
    std::vector<std::pair<int, int>> path;  // nodes, and the input to look at next
    enter(first, path);
    while (!path.empty()) {
      auto& [node, input] = path.back();
      if (input == graph_.node(node).input_size()) {
        state_[static_cast<std::size_t>(node)] = State::kDone;
        order_.push_back(node);
        path.pop_back();
        continue;
      }
      const auto writer = writers_.find(graph_.node(node).input(input++));
      if (writer != writers_.end()) enter(writer->second, path);
    }
  }

  void enter(int node, std::vector<std::pair<int, int>>& path) {
    State& state = state_[static_cast<std::size_t>(node)];
    if (state == State::kOpen) {
      const onnx::Node& through = graph_.node(node);
      engine::fail(ErrorKind::kCheckpoint, "its nodes form a cycle through '{}'",
                   through.name().empty() && through.output_size() > 0 ? through.output(0) : through.name());
    }
    if (state == State::kNew) {
      state = State::kOpen;
      path.emplace_back(node, 0);
    }
  }

  const onnx::Graph& graph_;
  std::map<std::string, int> writers_;
  std::vector<State> state_;
  std::vector<int> order_;
};

void sort_nodes(onnx::Graph& graph) {
  const std::vector<int> order = Sorter(graph).sort();
  if (std::ranges::is_sorted(order)) return;
  google::protobuf::RepeatedPtrField<onnx::Node> sorted;
  for (const int n : order) sorted.Add()->Swap(graph.mutable_node(n));
  graph.mutable_node()->Swap(&sorted);
}

void load_external(onnx::Tensor& tensor, ExternalData& data) {
  if (tensor.data_location() == onnx::Tensor::EXTERNAL) data.load(tensor, raw_bytes(tensor));
}

// All tensors of numbers, of initializers and attributes. The readers of others are refused.
std::vector<onnx::Tensor*> tensors_of(onnx::Graph& graph) {
  std::vector<onnx::Tensor*> tensors;
  const auto add = [&](onnx::Tensor* tensor) {
    if (has_numbers(*tensor)) tensors.push_back(tensor);
  };
  for (onnx::Tensor& tensor : *graph.mutable_initializer()) add(&tensor);
  for (onnx::Node& node : *graph.mutable_node()) {
    for (onnx::Attribute& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) add(attribute.mutable_t());
    }
  }
  return tensors;
}

// A small model may name the same large file many times, so the sum of all tensors is checked before any is read.
void check_size(const std::vector<onnx::Tensor*>& tensors) {
  constexpr std::uint64_t kMostExternalBytes = std::uint64_t{4} * kMostElements;
  std::uint64_t bytes = 0;
  for (const onnx::Tensor* tensor : tensors) {
    if (tensor->data_location() != onnx::Tensor::EXTERNAL) continue;
    bytes += raw_bytes(*tensor);
    if (bytes > kMostExternalBytes) {
      engine::fail(ErrorKind::kCheckpoint, "its tensors with external data have more than {} bytes together",
                   kMostExternalBytes);
    }
  }
}

void load_external(onnx::Graph& graph, const std::filesystem::path& path) {
  const std::vector<onnx::Tensor*> tensors = tensors_of(graph);
  check_size(tensors);
  ExternalData data(path);
  for (onnx::Tensor* tensor : tensors) load_external(*tensor, data);
}

void check_names(const onnx::Graph& graph) {
  std::set<std::string> names;
  for (const onnx::Tensor& tensor : graph.initializer()) {
    if (!names.insert(tensor.name()).second) {
      engine::fail(ErrorKind::kCheckpoint, "two initializers have the name '{}'", tensor.name());
    }
  }
  if (graph.sparse_initializer_size() > 0) engine::fail(ErrorKind::kCheckpoint, "it has sparse tensors");
}

}  // namespace

std::int64_t standard_operator_set(const onnx::Model& model) {
  for (const onnx::OperatorSet& set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") return set.version();
  }
  return 1;  // what a file without a version has
}

onnx::Model parse_onnx(std::string_view bytes, const std::filesystem::path& path) {
  onnx::Model model;
  google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream stream(&array);
  if (!model.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    engine::fail(ErrorKind::kCheckpoint,
                 "it is not an ONNX model, or it is damaged: it cannot be parsed as an ONNX protobuf message");
  }
  check_versions(model);
  onnx::Graph& graph = *model.mutable_graph();
  check_names(graph);
  load_external(graph, path);
  sort_nodes(graph);
  join_formulas(graph, standard_operator_set(model));
  return model;
}

onnx::Model read_onnx(const std::filesystem::path& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) {
    engine::fail(ErrorKind::kData, "cannot read the model '{}': {}", path.string(),
                 error ? error.message() : "No such file or directory");
  }
  try {
    RegularFile file(path);
    if (file.size() > kMostBytes) {
      engine::fail(ErrorKind::kCheckpoint,
                   "it has {} bytes, but an ONNX file must have fewer than 2 GiB; weights may "
                   "lie in a file beside it (external data)",
                   file.size());
    }
    std::string bytes(file.size(), '\0');
    file.read(std::as_writable_bytes(std::span(bytes)));
    return parse_onnx(bytes, path);
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("cannot read the model '{}': {}", path.string(), error.what()));
  }
}

}  // namespace arbalest::jobs
