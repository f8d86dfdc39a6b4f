#include "interchange/export/onnx_export.h"

#include <algorithm>
#include <utility>

#include "dataflow/graph.h"
#include "engine/base/error.h"
#include "interchange/export/layer_writer.h"
#include "interchange/export/onnx_writer.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

using dataflow::Graph;
using dataflow::NamedTensor;
using engine::ErrorKind;

namespace {

// The file format that came with an operator set of 13 or more.
constexpr std::int64_t format_of(std::int64_t operator_set) { return operator_set < 15 ? 7 : 8; }

constexpr std::int64_t kMostBytes = (std::int64_t{1} << 31) - (std::int64_t{1} << 24);  // leaves room for the nodes

constexpr const char* kLogits = "logits";
constexpr const char* kPrediction = "prediction";
constexpr const char* kProbabilities = "probabilities";

void describe(onnx::Value& value, const std::string& name, onnx::Tensor::DataType type,
              std::span<const std::int64_t> extents_of_example) {
  value.set_name(name);
  onnx::TensorType& tensor = *value.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(type);
  tensor.mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t extent : extents_of_example) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

std::vector<std::string> layer_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const Graph::Node& node : graph.nodes()) names.push_back(node.name);
  return names;
}

// Returns for each node whether `tensor` depends on it.
std::vector<bool> needed_for(const dataflow::Graph& graph, int tensor) {
  std::vector<bool> needed_tensors(static_cast<std::size_t>(graph.tensors()), false);
  needed_tensors[static_cast<std::size_t>(tensor)] = true;
  std::vector<bool> needed(graph.nodes().size(), false);
  for (std::size_t n = needed.size(); n-- > 0;) {
    const dataflow::Graph::Node& node = graph.nodes()[n];
    needed[n] = needed_tensors[static_cast<std::size_t>(node.output)];
    if (!needed[n]) continue;
    for (const int input : node.inputs) needed_tensors[static_cast<std::size_t>(input)] = true;
  }
  return needed;
}

// The tensor that `tensor` is a copy of at inference.
int without_dropout(const Graph& graph, int tensor) {
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->output == tensor && node->layer->kind() == "dropout") tensor = node->inputs[0];
  }
  return tensor;
}

// The tensors by name, each taken once.
class Weights {
 public:
  explicit Weights(std::vector<NamedTensor> tensors) {
    std::int64_t bytes = 0;
    for (NamedTensor& tensor : tensors) {
      bytes += static_cast<std::int64_t>(tensor.values.size() * sizeof(float));
      std::string name = tensor.name;
      tensors_.insert_or_assign(std::move(name), std::move(tensor));
    }
    if (bytes >= kMostBytes) {
      engine::fail(ErrorKind::kUsage,
                   "the weights have {} bytes, but an ONNX file must have fewer than 2 GiB; export to safetensors",
                   bytes);
    }
  }

  NamedTensor take(const std::string& name, const engine::Shape& shape) {
    auto found = tensors_.extract(name);
    if (found.empty()) engine::fail(ErrorKind::kCheckpoint, "the parameter '{}' is missing", name);
    if (found.mapped().shape != shape) {
      engine::fail(ErrorKind::kCheckpoint, "the parameter '{}' has the shape {}, not {}", name,
                   to_string(found.mapped().shape), to_string(shape));
    }
    return std::move(found.mapped());
  }

  void check_empty() const {
    if (tensors_.empty()) return;
    engine::fail(ErrorKind::kCheckpoint, "the model has no parameter '{}'", tensors_.begin()->first);
  }

 private:
  std::map<std::string, NamedTensor> tensors_;
};

class ModelWriter {
 public:
  ModelWriter(const Graph& graph, std::vector<NamedTensor> tensors, const OnnxOptions& options, onnx::Graph& target)
      : graph_(graph),
        options_(options),
        target_(target),
        shapes_(graph.shapes(1)),
        weights_(std::move(tensors)),
        input_(graph.input().only_feature().name),
        output_(graph.input().predicts_numbers() ? kPrediction : kLogits),
        writer_(target, {.values = {input_, output_, kProbabilities}, .nodes = layer_names(graph)}),
        values_(static_cast<std::size_t>(graph.tensors())) {}

  // Returns the operator set of the nodes.
  std::int64_t write() {
    const int result = without_dropout(graph_, output_tensor(graph_));
    const std::vector<bool> needed = needed_for(graph_, result);
    values_.front() = input_;
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) write_node(graph_.nodes()[n], needed[n], result);
    weights_.check_empty();
    const dataflow::TensorDescription& read = graph_.input().only_feature();
    describe(*target_.add_input(), input_,
             read.dtype == engine::DType::kInt32 ? onnx::Tensor::INT64 : onnx::Tensor::FLOAT,
             {read.shape.begin(), read.shape.end()});
    const engine::Shape& shape = shapes_[static_cast<std::size_t>(result)];
    describe(*target_.add_output(), output_, onnx::Tensor::FLOAT, std::span(shape.begin() + 1, shape.end()));
    if (options_.softmax) add_softmax(std::span(shape.begin() + 1, shape.end()));
    return writer_.operator_set();
  }

 private:
  void write_node(const Graph::Node& node, bool is_needed, int result) {
    const std::vector<engine::Shape> inputs = Graph::input_shapes(node, shapes_);
    const std::vector<dataflow::ParameterSpec> specs = Graph::parameters(node, shapes_);
    std::vector<NamedTensor> weights;
    for (const dataflow::ParameterSpec& spec : specs) {
      weights.push_back(weights_.take(node.name + "." + spec.name, spec.shape));
    }
    if (!is_needed) return;
    std::vector<std::string> values;
    for (const int input : node.inputs) values.push_back(values_[static_cast<std::size_t>(input)]);
    OnnxLayer layer{.node = node,
                    .inputs = inputs,
                    .parameters = specs,
                    .values = std::move(values),
                    .weights = std::move(weights),
                    .output = node.output == result ? output_ : ""};
    values_[static_cast<std::size_t>(node.output)] = LayerWriter(std::move(layer), writer_).write();
  }

  void add_softmax(std::span<const std::int64_t> classes) {
    const std::vector<std::string> inputs{output_};
    set_attribute(writer_.add("Softmax", writer_.new_node(kProbabilities), inputs, kProbabilities), "axis",
                  std::int64_t{-1});
    describe(*target_.add_output(), kProbabilities, onnx::Tensor::FLOAT, classes);
  }

  const Graph& graph_;
  const OnnxOptions& options_;
  onnx::Graph& target_;
  std::vector<engine::Shape> shapes_;  // of mini-batches of one example
  Weights weights_;
  std::string input_;   // name of the input
  std::string output_;  // name of the output
  OnnxWriter writer_;
  std::vector<std::string> values_;  // names in the file, by tensor
};

}  // namespace

onnx::Model to_onnx(const Graph& graph, std::vector<NamedTensor> tensors, const OnnxOptions& options) {
  if (options.softmax && graph.input().predicts_numbers()) {
    engine::fail(ErrorKind::kUsage, "--softmax: the model predicts numbers, not classes, so it has no probabilities");
  }
  onnx::Model model;
  model.set_producer_name("arbalest");
  model.mutable_graph()->set_name(options.name);
  onnx::OperatorSet& operators = *model.add_opset_import();
  operators.set_domain("");
  operators.set_version(ModelWriter(graph, std::move(tensors), options, *model.mutable_graph()).write());
  model.set_ir_version(format_of(operators.version()));
  for (const auto& [key, value] : options.metadata) {
    onnx::Entry& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model;
}

}  // namespace arbalest::jobs
