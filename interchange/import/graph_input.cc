#include "interchange/import/graph_input.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <vector>

#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "interchange/import/formulas/formula_graph.h"
#include "interchange/import/formulas/formulas.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

constexpr std::int64_t kMostNumbers = 1'000'000;  // of one extent; a dataset's limit

const onnx::Value& only_input(const onnx::Graph& graph) {
  std::set<std::string> constants;
  for (const onnx::Tensor& tensor : graph.initializer()) constants.insert(tensor.name());
  std::vector<const onnx::Value*> inputs;
  std::vector<std::string> names;
  for (const onnx::Value& input : graph.input()) {
    if (constants.contains(input.name())) continue;
    inputs.push_back(&input);
    names.push_back("'" + input.name() + "'");
  }
  if (inputs.size() == 1) return *inputs.front();
  constexpr std::size_t kMostShown = 8;
  names.resize(std::min(names.size(), kMostShown));
  engine::fail(ErrorKind::kInvalidJob, "the model has {} inputs{}{}; a job's model has one",
               inputs.empty() ? "no" : std::to_string(inputs.size()), inputs.empty() ? "" : ": ",
               fmt::join(names, ", "));
}

// Finds out whether all nodes that read an image [n, h, w, c] first put its channels first, as files that Keras' models
// become do. Before, they may scale, shift and normalize the channels, and pad the image.
class ChannelOrder {
 public:
  // `extents`: h, w, c.
  ChannelOrder(const onnx::Graph& graph, const std::vector<std::int64_t>& extents)
      : graph_(graph), extents_(extents), values_(graph, kAnyOperatorSet) {}

  // The nodes are sorted.
  bool is_put_first(const std::string& input) const {
    std::set<std::string> images = {input};  // [n, h, w, c]
    bool is_read = false;
    for (const onnx::Node& node : graph_.node()) {
      const bool reads =
          std::ranges::any_of(node.input(), [&](const std::string& name) { return images.contains(name); });
      if (!reads) continue;
      is_read = true;
      if (puts_first(node)) continue;
      if (!scales(node)) return false;
      images.insert(node.output(0));
    }
    return is_read;
  }

 private:
  static constexpr std::int64_t kAnyOperatorSet = 1;  // constants are the same in all

  bool puts_first(const onnx::Node& node) const {
    if (node.op_type() == "Transpose") {
      const auto order = std::ranges::find(node.attribute(), std::string("perm"), &onnx::Attribute::name);
      return order != node.attribute().end() && std::ranges::equal(order->ints(), std::array{0, 3, 1, 2});
    }
    // With one channel, or one pixel, a Reshape does that, too.
    if (node.op_type() != "Reshape" || node.input_size() != 2) return false;
    if (extents_[2] != 1 && extents_[0] * extents_[1] != 1) return false;
    const std::optional<std::vector<std::int64_t>> target = values_.integers(node.input(1));
    return target && target->size() == 4 &&
           std::ranges::equal(std::span(*target).subspan(1), std::array{extents_[2], extents_[0], extents_[1]});
  }

  // Whether the node computes an image of the same order, by one number for each channel or by padding.
  bool scales(const onnx::Node& node) const {
    const std::set<std::string> kinds = {"Add", "Div", "Mul", "Sub"};
    if (node.output_size() != 1) return false;
    if (node.op_type() == "Cast" || node.op_type() == "Identity") return true;
    if (node.op_type() == "Pad" || node.op_type() == kSpelledNorm) return true;
    return kinds.contains(node.op_type()) && node.input_size() == 2 &&
           (values_.is_constant(node.input(0)) || values_.is_constant(node.input(1)));
  }

  const onnx::Graph& graph_;
  const std::vector<std::int64_t>& extents_;
  FormulaGraph values_;
};

}  // namespace

GraphInput find_graph_input(const onnx::Graph& graph) {
  const onnx::Value& value = only_input(graph);
  const onnx::TensorType& type = value.type().tensor_type();
  GraphInput input{.name = value.name()};
  const bool is_floating = type.elem_type() == onnx::Tensor::FLOAT || type.elem_type() == onnx::Tensor::FLOAT16 ||
                           type.elem_type() == onnx::Tensor::DOUBLE;
  input.is_ids = type.elem_type() == onnx::Tensor::INT64 || type.elem_type() == onnx::Tensor::INT32;
  const int rank = type.shape().dim_size();
  if ((!is_floating && !input.is_ids) || rank < 2 || rank > (input.is_ids ? 2 : 4)) {
    engine::fail(ErrorKind::kInvalidJob,
                 "the input '{}' has {} dimensions and elements of type {}; it must be images [n, c, h, w], lines "
                 "[n, c, w] or rows [n, features] of floating-point numbers, or ids [n, columns]",
                 input.name, rank, type.elem_type());
  }
  const onnx::Extent& batch = type.shape().dim(0);
  if (batch.has_dim_value() && batch.dim_value() > 0) input.fixed_batch = batch.dim_value();
  std::vector<std::int64_t> extents;
  for (int axis = 1; axis < rank; ++axis) {
    const std::int64_t extent = type.shape().dim(axis).dim_value();
    if (extent < 1 || extent > kMostNumbers) {
      engine::fail(ErrorKind::kInvalidJob,
                   "dimension {} of the input '{}' is {}; all but the number of examples must be fixed, in [1, {}]: "
                   "export the model for one size",
                   axis, input.name, extent == 0 ? "free" : std::to_string(extent), kMostNumbers);
    }
    extents.push_back(extent);
  }
  input.has_last_channels = rank == 4 && ChannelOrder(graph, extents).is_put_first(input.name);
  if (input.has_last_channels) std::ranges::rotate(extents, extents.end() - 1);
  input.is_vector = rank == 2 && !input.is_ids;
  if (input.is_vector) extents.insert(extents.end(), {1, 1});
  input.is_line = rank == 3;
  if (input.is_line) extents.insert(extents.begin() + 1, 1);
  for (const std::int64_t extent : extents) input.shape.append(extent);
  return input;
}

}  // namespace arbalest::jobs
