// Pad: pixels around an image for the window that reads it, or channels of zeros (padded_shortcut).
#include <algorithm>
#include <array>
#include <utility>

#include "interchange/export/layer_writer.h"
#include "interchange/import/operators.h"

namespace arbalest::jobs {

namespace {

// Two pads for each of the `rank` dimensions.
std::vector<std::int64_t> pads_of(GraphImport& graph, NodeReader& node, std::int64_t rank) {
  if (graph.operator_set < 11) return node.integers(node.has("paddings") ? "paddings" : "pads", {});
  const Constant& pads = graph.constant(node, 1, "its pads");
  if (graph.has_input(node, 3)) {
    const Constant& axes = graph.constant(node, 3, "its axes");
    std::vector<std::int64_t> all(2 * static_cast<std::size_t>(rank), 0);
    if (pads.integers.size() != 2 * axes.integers.size()) refuse("its pads and axes do not fit together");
    for (std::size_t a = 0; a < axes.integers.size(); ++a) {
      const std::int64_t axis = axes.integers[a] < 0 ? axes.integers[a] + rank : axes.integers[a];
      if (axis < 0 || axis >= rank) refuse("it pads the axis {}", axes.integers[a]);
      all[static_cast<std::size_t>(axis)] = pads.integers[a];
      all[static_cast<std::size_t>(axis + rank)] = pads.integers[a + axes.integers.size()];
    }
    return all;
  }
  return pads.integers;
}

float value_of(GraphImport& graph, NodeReader& node) {
  if (graph.operator_set < 11) return node.number("value", 0.0F);
  const Constant* value = graph.optional_constant(node, 2, "its value");
  if (value != nullptr && !value->is_single()) refuse("its value is not one number");
  return value == nullptr ? 0.0F : static_cast<float>(value->single());
}

// Channels of zeros, half of them before. A max pooling of one pixel just before is the shortcut's stride.
void add_channels(GraphImport& graph, NodeReader& node, const Tensor& input, std::int64_t before, std::int64_t after) {
  if (before != (before + after) / 2) {
    refuse("it adds {} channels before and {} behind; half of them must come before", before, after);
  }
  ImportedLayer layer{.name = graph.name_for(node)};
  v1::PaddedShortcut& shortcut = *layer.message.mutable_padded_shortcut();
  shortcut.set_channels(static_cast<int>(input.shape[1] + before + after));
  if (input.source != kImageSource && input.is_read_once) {
    const v1::Layer& message = graph.layers().at(input.source).message;
    const v1::Pool& pool = message.max_pool();
    const bool takes_pixels = message.has_max_pool() && pool.kernel() == 1 && pool.stride() > 1 &&
                              !pool.has_padding() && !pool.has_extra_padding() && !pool.ceil_mode();
    const bool is_ours = graph.is_step_of(graph.layers().at(input.source).name, layer.name, "subsample");
    if (takes_pixels && is_ours) {
      shortcut.set_stride(pool.stride());
      Tensor output = graph.layers().replace(input.source, std::move(layer));
      output.is_positive = input.is_positive;
      graph.put(node, output);
      return;
    }
  }
  Tensor output = graph.layers().add(std::move(layer), {input});
  output.view = input.view;
  output.is_positive = input.is_positive;
  graph.put(node, output);
}

void import_pad(GraphImport& graph, NodeReader& node) {
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "edge")
    refuse("its mode is '{}'; only 'constant' and 'edge' can be imported", mode);
  const Tensor input = graph.tensor(node, 0);
  std::vector<std::int64_t> pads = pads_of(graph, node, input.rank());
  const float value = value_of(graph, node);
  if (std::cmp_not_equal(pads.size(), 2 * input.rank())) refuse("it must have two pads for each dimension");
  const bool is_none = std::ranges::all_of(pads, [](std::int64_t pad) { return pad == 0; });
  if (is_none) return graph.put(node, input);
  if (input.rank() < 3) refuse("it pads something else than an image");
  for (const std::int64_t pad : pads) {
    if (pad < 0 || pad > kMostPixels) refuse("it pads by {}", pad);
  }
  if (input.view == Tensor::View::kLine) {
    pads = {pads[0], pads[1], 0, pads[2], pads[3], pads[4], 0, pads[5]};
  } else if (input.view == Tensor::View::kLastChannels) {
    pads = {pads[0], pads[3], pads[1], pads[2], pads[4], pads[7], pads[5], pads[6]};
  }
  const std::array<std::int64_t, 4> around{pads[2], pads[3], pads[6], pads[7]};
  const bool pads_pixels = std::ranges::any_of(around, [](std::int64_t pad) { return pad != 0; });
  const bool pads_channels = pads[1] != 0 || pads[5] != 0;
  if (pads[0] != 0 || pads[4] != 0 || (pads_pixels && pads_channels)) {
    refuse("it pads more than the pixels or the channels of an image");
  }
  const bool repeats_edges = mode == "edge";
  if (repeats_edges && pads_channels) refuse("it repeats channels");
  if (pads_pixels) {
    return graph.put(node, Padded{.tensor = input, .pads = around, .value = value, .repeats_edges = repeats_edges});
  }
  if (value != 0.0F || input.view == Tensor::View::kLastChannels) refuse("it adds channels with {}, not 0", value);
  add_channels(graph, node, input, pads[1], pads[5]);
}

}  // namespace

const OperatorTable& padding_operators() {
  static const OperatorTable kTable = {{"Pad", import_pad}};
  return kTable;
}

// Every stride-th pixel is a maximum over one pixel. Then channels of zeros are added around.
void write_operator(LayerWriter& layer, const engine::PaddedShortcutSpec& spec) {
  const std::int64_t added = spec.channels - spec.input.shape()[1];
  if (added == 0 && spec.stride == 1) {
    layer.pass_on();
    return;
  }
  std::string pixels = layer.input();
  if (spec.stride > 1) {
    onnx::Node& pool = added == 0 ? layer.finish("MaxPool", {pixels}) : layer.step("MaxPool", "subsample", {pixels});
    describe_window(pool, {.kernel = {1, 1}, .stride = {spec.stride, spec.stride}});
    pixels = pool.output(0);
  }
  if (added == 0) return;
  const std::array<std::int64_t, 8> pads{0, added / 2, 0, 0, 0, added - added / 2, 0, 0};
  layer.finish("Pad", {pixels, layer.file().add_integers(layer.part_name("pads"), pads)});
}

}  // namespace arbalest::jobs
