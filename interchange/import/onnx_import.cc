#include "interchange/import/onnx_import.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "interchange/import/graph/graph_import.h"
#include "interchange/import/graph_input.h"
#include "interchange/import/notes/batch_norm_notes.h"
#include "interchange/import/notes/export_signature.h"
#include "interchange/import/onnx_file.h"
#include "interchange/import/operators.h"
#include "messages/text_encoding.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

constexpr const char* kProducer = "arbalest";  // producer_name of our own files

// The part of a graph that the model's output depends on.
class Needed {
 public:
  explicit Needed(const onnx::Graph& graph) : graph_(graph) {
    for (int n = 0; n < graph.node_size(); ++n) {
      for (const std::string& output : graph.node(n).output()) writers_.emplace(output, n);
    }
    nodes_.resize(static_cast<std::size_t>(graph.node_size()), false);
  }

  // Tells whether there is a softmax at the end, and over which axis.
  struct LastSoftmax {
    bool is_found = false;
    bool is_over_last_axis = false;  // instead of over axis 1
  };

  // Follows one softmax over the classes back to the logits. A softmax before that one is a layer.
  LastSoftmax skip_softmax(std::string& result, std::int64_t operator_set) const {
    LastSoftmax skipped;
    for (auto writer = writers_.find(result); writer != writers_.end(); writer = writers_.find(result)) {
      const onnx::Node& node = graph_.node(writer->second);
      const bool is_softmax = node.op_type() == "Softmax" || node.op_type() == "LogSoftmax";
      if ((!is_softmax && node.op_type() != "Identity") || node.input_size() != 1) break;
      if (is_softmax && skipped.is_found) break;
      const std::int64_t axis = is_softmax ? NodeReader(node).integer("axis", operator_set < 13 ? 1 : -1) : 1;
      if (axis != 1 && axis != -1) break;
      result = node.input(0);
      if (is_softmax) skipped = {.is_found = true, .is_over_last_axis = axis == -1};
    }
    return skipped;
  }

  // Marks the nodes. They are sorted.
  void mark(const std::string& result) {
    std::set<std::string> values = {result};
    reads_[result] = 1;
    for (int n = graph_.node_size(); n-- > 0;) {
      const onnx::Node& node = graph_.node(n);
      const bool is_needed =
          std::ranges::any_of(node.output(), [&](const std::string& output) { return values.contains(output); });
      if (!is_needed) continue;
      nodes_[static_cast<std::size_t>(n)] = true;
      for (const std::string& input : node.input()) {
        if (input.empty()) continue;
        values.insert(input);
        ++reads_[input];
      }
    }
  }

  bool contains(int node) const { return nodes_[static_cast<std::size_t>(node)]; }
  const std::map<std::string, int>& reads() const noexcept { return reads_; }

 private:
  const onnx::Graph& graph_;
  std::map<std::string, int> writers_;
  std::vector<bool> nodes_;
  std::map<std::string, int> reads_;
};

class ModelImport {
 public:
  ModelImport(const onnx::Model& model, std::size_t most_computed)
      : model_(model),
        graph_(model.graph()),
        input_(find_graph_input(graph_)),
        needed_(graph_),
        is_ours_(model.producer_name() == kProducer),
        result_(choose_output()) {
    if (!is_our_result(result_)) softmax_ = needed_.skip_softmax(result_, standard_operator_set(model));
    needed_.mark(result_);
    import_.emplace(input_.one_example(), needed_.reads(), is_ours_, input_.fixed_batch);
    import_->operator_set = standard_operator_set(model);
    import_->most_computed = most_computed;
    import_->parameters = read_signature(graph_).parameters;
  }

  ImportedModel run() {
    define_values();
    for (int n = 0; n < graph_.node_size(); ++n) {
      if (needed_.contains(n)) import_node(graph_.node(n));
    }
    throw_refused();
    return finish();
  }

 private:
  // Whether the output is what our exporter calls the output of the model. A softmax that `export --softmax` adds is
  // behind it, so a softmax before it is a layer.
  bool is_our_result(const std::string& output) const {
    return is_ours_ && (output == "logits" || output == "prediction");
  }

  // Other files have one output, or the main one first.
  std::string choose_output() {
    if (graph_.output_size() == 0) engine::fail(ErrorKind::kInvalidJob, "the model has no output");
    for (const onnx::Value& output : graph_.output()) {
      if (is_our_result(output.name())) return output.name();
    }
    if (graph_.output_size() > 1) {
      first_notes_.push_back(fmt::format("the model has {} outputs; the first one, '{}', is imported",
                                         graph_.output_size(), graph_.output(0).name()));
    }
    return graph_.output(0).name();
  }

  void define_values() {
    for (const onnx::Tensor& tensor : graph_.initializer()) {
      if (!needed_.reads().contains(tensor.name())) continue;
      if (has_numbers(tensor)) {
        import_->define(tensor.name(), std::make_shared<const Constant>(constant_of(tensor)));
      } else {
        import_->define(tensor.name(), Unknown{type_problem(tensor)});
      }
    }
    const auto reads = needed_.reads().find(input_.name);
    Tensor image{.source = kImageSource, .shape = input_.one_example()};
    image.is_read_once = reads != needed_.reads().end() && reads->second == 1;
    if (input_.is_vector) image.view = Tensor::View::kVector;
    if (input_.is_line) image.view = Tensor::View::kLine;
    if (input_.has_last_channels) image.view = Tensor::View::kLastChannels;
    import_->define(input_.name, image);
  }

  void import_node(const onnx::Node& node) {
    NodeReader reader(node);
    try {
      import_known(node, reader);
    } catch (const FollowsUnknown&) {
      ++followers_;
      make_unknown(node);
    } catch (const NodeRefused& refused) {
      const std::string& name = node.name().empty() ? node.output(0) : node.name();
      refused_.push_back(printable(fmt::format("{} '{}': {}", node.op_type(), name, refused.what())));
      make_unknown(node);
    }
  }

  void import_known(const onnx::Node& node, NodeReader& reader) {
    if (!node.domain().empty() && node.domain() != "ai.onnx") refuse("it is an operator of '{}'", node.domain());
    const Operator known = find_operator(node.op_type());
    for (int k = 0; known != nullptr && k < node.input_size(); ++k) import_->input(reader, k);  // one may be unknown
    const bool is_folded = fold(*import_, reader);
    if (!is_folded && known == nullptr) refuse("this kind of operator cannot be imported");
    for (int k = 1; k < node.output_size(); ++k) {
      if (needed_.reads().contains(node.output(k)))
        refuse("its output {} is used, but only the first output can be imported", k);
    }
    if (!is_folded) known(*import_, reader);
    reader.check_all_asked();
  }

  void make_unknown(const onnx::Node& node) {
    for (const std::string& output : node.output()) import_->define(output, Unknown{});
  }

  void throw_refused() const {
    if (refused_.empty()) return;
    engine::fail(ErrorKind::kInvalidJob, "{} of its {} nodes cannot be imported:\n  {}{}", refused_.size(),
                 graph_.node_size(), fmt::join(refused_, "\n  "),
                 followers_ == 0 ? "" : fmt::format("\nNodes that depend on these were not checked: {}", followers_));
  }

  // The result as a vector of features.
  Tensor result_vector() {
    const Value* value = import_->find(result_);
    if (value == nullptr) engine::fail(ErrorKind::kInvalidJob, "no node writes the output '{}'", result_);
    onnx::Node flatten;
    flatten.set_name("flatten");
    flatten.add_output("");
    const NodeReader reader(flatten);
    try {
      Tensor tensor = import_->as_tensor(reader, *value);
      if (tensor.shape.rank() == 4 && tensor.shape[2] == 1 && tensor.shape[3] == 1 && tensor.source != kImageSource) {
        if (softmax_.is_over_last_axis) refuse("its softmax is over the last axis of an image, not over the channels");
        ImportedLayer layer{.name = "flatten"};
        layer.message.mutable_flatten();
        tensor = import_->layers().add(std::move(layer), {tensor});
      }
      if (tensor.shape.rank() == 2 && tensor.channels_first.empty() && tensor.source != kImageSource) return tensor;
      engine::fail(ErrorKind::kInvalidJob, "its output is [n, {}], not one number for each class [n, classes]",
                   fmt::join(tensor.shape.begin() + 1, tensor.shape.end(), ", "));
    } catch (const NodeRefused& refused) {
      engine::fail(ErrorKind::kInvalidJob, "its output '{}' cannot be imported: {}", result_, refused.what());
    }
  }

  // Softmax cross-entropy needs two outputs, and takes one class as the right one.
  void check_outputs(const Tensor& last, std::vector<std::string>& notes) {
    if (input_.is_ids) return;
    if (last.shape[1] < 2) {
      engine::fail(ErrorKind::kInvalidJob,
                   "its output has one number for each example; a classifier here needs one for each class, at least "
                   "two: end the model with a layer of two outputs, and export it again");
    }
    if (!is_ours_ && import_->layers().at(last.source).message.has_sigmoid()) {
      notes.emplace_back(
          "the model ends in a sigmoid, as one for several labels or for yes and no does; here it stays a layer, and "
          "training, evaluate and predict take the softmax of its outputs, with one right class for each example");
    }
  }

  void add_loss(const LayerList::Named& named, int source, ImportedModel& result) const {
    std::string name = "loss";
    while (std::ranges::count(named.names, name) > 0) name += '_';
    v1::Layer& loss = result.layers.emplace_back();
    loss.set_name(name);
    loss.add_input(named.names[static_cast<std::size_t>(source)]);
    loss.add_input("label");
    if (input_.is_ids) {
      loss.mutable_squared_error();
    } else {
      loss.mutable_softmax_cross_entropy();
    }
  }

  // Warns of batch norm that the exporter has changed. Our own files hold what the run has.
  void note_batch_norm() {
    if (is_ours_) return;
    std::string folded = folded_norms_warning(model_, import_->layers().all());
    if (folded.empty() && import_->scales_channels) folded = scaled_channels_warning();
    for (std::string warning : {folded, moved_statistics_warning(model_)}) {
      if (!warning.empty()) import_->note(std::move(warning));
    }
  }

  ImportedModel finish() {
    const Tensor last = result_vector();
    note_batch_norm();
    ImportedModel result;
    result.notes = std::move(first_notes_);
    result.notes.insert(result.notes.end(), import_->notes().begin(), import_->notes().end());
    if (softmax_.is_found) {
      result.notes.emplace_back("the softmax at the end is left out, because the loss reads logits");
    }
    check_outputs(last, result.notes);
    result.input =
        input_.is_ids ? dataflow::ratings_input(sizes_of_ids()) : dataflow::image_input(input_.shape, last.shape[1]);
    LayerList::Named named = std::move(import_->layers()).named(result.input.only_feature().name);
    result.layers = std::move(named.layers);
    result.weights = std::move(named.weights);
    add_loss(named, last.source, result);
    if (!is_ours_) return result;  // the texts of other programs have other meanings
    result.name = graph_.name();
    for (const onnx::Entry& entry : model_.metadata_props()) result.metadata[entry.key()] = entry.value();
    return result;
  }

  // The number of ids in each column: the rows of the smallest table for it.
  std::vector<std::int64_t> sizes_of_ids() {
    constexpr std::int64_t kUnknown = 0;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(input_.shape[0]), kUnknown);
    for (const ImportedLayer& layer : import_->layers().all()) {
      if (!layer.message.has_embedding()) continue;
      const v1::Embedding& table = layer.message.embedding();
      std::int64_t& size = sizes[static_cast<std::size_t>(table.column())];
      size = size == kUnknown ? table.rows() : std::min<std::int64_t>(size, table.rows());
    }
    std::ranges::replace(sizes, kUnknown, std::int64_t{1});  // nothing reads the column
    return sizes;
  }

  const onnx::Model& model_;
  const onnx::Graph& graph_;
  GraphInput input_;
  Needed needed_;
  bool is_ours_;
  std::vector<std::string> first_notes_;
  std::string result_;  // name of the output
  Needed::LastSoftmax softmax_;
  std::optional<GraphImport> import_;
  std::vector<std::string> refused_;
  int followers_ = 0;  // nodes that depend on refused ones
};

}  // namespace

ImportedModel import_onnx(const onnx::Model& model, std::size_t most_computed) {
  return ModelImport(model, most_computed).run();
}

}  // namespace arbalest::jobs
