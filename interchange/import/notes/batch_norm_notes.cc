#include "interchange/import/notes/batch_norm_notes.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <fmt/format.h>

#include "interchange/import/notes/export_signature.h"
#include "messages/text.h"

namespace arbalest::jobs {

namespace {

// Works with both of PyTorch's exporters, and changes nothing in the model.
constexpr const char* kKeep =
    "To keep batch norm as it is, export with torch.onnx.export(model.eval(), (example,), \"model.onnx\", "
    "training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, optimize=False)";

constexpr const char* kEffect =
    "fine-tuning works, but training from the start is not the same as training your network";

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_torch(const onnx::Model& model) { return model.producer_name() == "pytorch"; }

// The layers into which PyTorch's newer exporter says that it has folded batch norm.
int recorded_foldings(const onnx::Graph& graph) {
  return static_cast<int>(std::ranges::count_if(graph.node(), [](const onnx::Node& node) {
    return has_part(value_of(node.metadata_props(), "pkg.onnxscript.rewriter.rule_name"), "FuseBatchNorm");
  }));
}

int norms_before_export(const onnx::Graph& graph) {
  const ExportSignature signature = read_signature(graph);
  return static_cast<int>(
      std::ranges::count_if(signature.buffers, [](const std::string& name) { return name.ends_with("running_mean"); }));
}

// Names that PyTorch's older exporter gives to weights that it has computed: "onnx::Conv_42", or "42".
bool is_computed(std::string_view name) {
  constexpr std::string_view kPrefix = "onnx::Conv_";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return !name.empty() && std::ranges::all_of(name, [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

// Folding replaces both weight and bias.
int convolutions_with_computed_weights(const onnx::Graph& graph) {
  return static_cast<int>(std::ranges::count_if(graph.node(), [](const onnx::Node& node) {
    return node.op_type() == "Conv" && node.input_size() > 2 && is_computed(node.input(1)) &&
           is_computed(node.input(2));
  }));
}

bool has_named_weights(const onnx::Graph& graph) {
  return std::ranges::any_of(graph.node(), [](const onnx::Node& node) {
    return node.op_type() == "Conv" && node.input_size() > 1 && node.input(1).ends_with(".weight");
  });
}

// Whether a part of the name is "bn", "bn1", "bn2a" … or begins with "batchnorm" or "batch_norm".
bool names_batch_norm(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (has_part(name, "batchnorm") || has_part(name, "batch_norm")) return true;
  const auto is_letter = [](char letter) { return letter >= 'a' && letter <= 'z'; };
  for (std::size_t at = name.find("bn"); at != std::string::npos; at = name.find("bn", at + 1)) {
    const bool begins =
        at == 0 || (!is_letter(name[at - 1]) && std::isdigit(static_cast<unsigned char>(name[at - 1])) == 0);
    const bool ends = at + 2 == name.size() || !is_letter(name[at + 2]);
    if (begins && ends) return true;
  }
  return false;
}

bool has_name_of_batch_norm(const onnx::Graph& graph) {
  const auto is_named = [](const onnx::Node& node) {
    const std::string& kind = node.op_type();
    if (kind != "Conv" && kind != "Gemm" && kind != "MatMul" && kind != "Add") return false;
    return names_batch_norm(node.name()) || std::ranges::any_of(node.input(), names_batch_norm) ||
           std::ranges::any_of(node.output(), names_batch_norm);
  };
  return std::ranges::any_of(graph.node(), is_named);
}

// Whether the layers are those of a network that is trained with batch norm: deep, with biases, and with sums of
// branches or convolutions of single channels, as in ResNet and MobileNet.
bool looks_folded(const std::vector<ImportedLayer>& layers) {
  constexpr int kMany = 8;
  int biased = 0;
  bool has_sums = false;
  bool has_single_channels = false;
  for (const ImportedLayer& layer : layers) {
    if (layer.message.has_conv()) {
      biased += layer.weights.size() > 1 ? 1 : 0;
      has_single_channels =
          has_single_channels || (layer.message.conv().groups() > 1 && layer.weights[0].shape[1] == 1);
    }
    has_sums = has_sums || layer.message.has_add();
  }
  return biased >= kMany && (has_sums || has_single_channels);
}

}  // namespace

std::string folded_norms_warning(const onnx::Model& model, const std::vector<ImportedLayer>& layers) {
  const onnx::Graph& graph = model.graph();
  const bool has_norm =
      std::ranges::any_of(layers, [](const ImportedLayer& layer) { return layer.message.has_batch_norm(); });
  if (const int recorded = recorded_foldings(graph); recorded > 0) {
    return fmt::format("PyTorch's exporter has folded batch norm into {}, and the model here has none there: {}. {}",
                       counted(recorded, "layer"), kEffect, kKeep);
  }
  if (const int norms = norms_before_export(graph); norms > 0 && !has_norm) {
    return fmt::format("the network that was exported had {} with batch norm, and the file has none: {}. {}",
                       counted(norms, "layer"), kEffect, kKeep);
  }
  if (!is_torch(model)) {
    if (has_norm || (!has_name_of_batch_norm(graph) && !looks_folded(layers))) return "";
    return fmt::format(
        "the file has no batch norm, and its exporter has probably folded it into other layers: {}. "
        "Export it without that optimization to keep batch norm; Keras' JAX backend keeps it",
        kEffect);
  }
  if (const int computed = convolutions_with_computed_weights(graph); computed > 0) {
    return fmt::format(
        "PyTorch's exporter has computed new weights for {}, as it does when it folds batch norm into "
        "them: if your network has batch norm there, {}. {}",
        counted(computed, "convolution"), kEffect, kKeep);
  }
  if (has_norm || has_named_weights(graph) || !looks_folded(layers)) return "";
  return fmt::format("the file has no batch norm: if your network has it, {}. {}", kEffect, kKeep);
}

std::string scaled_channels_warning() {
  return fmt::format(
      "the file scales channels by constants, as exporters write batch norm whose numbers they have multiplied. Here "
      "they "
      "are convolutions of one pixel or parts of dense layers, which normalize nothing: {}. Keras' JAX backend keeps "
      "batch norm, and so does torch.onnx.export(model.eval(), (example,), \"model.onnx\", dynamo=False, "
      "do_constant_folding=False) for Keras' PyTorch backend",
      kEffect);
}

std::string moved_statistics_warning(const onnx::Model& model) {
  if (!is_torch(model)) return "";
  const bool trains = std::ranges::any_of(model.graph().node(), [](const onnx::Node& node) {
    return node.op_type() == "BatchNormalization" &&
           std::ranges::any_of(node.attribute(), [](const onnx::Attribute& attribute) {
             return attribute.name() == "training_mode" && attribute.i() != 0;
           });
  });
  if (!trains) return "";
  return fmt::format(
      "batch norm was exported in training mode: PyTorch has moved its running statistics, in your model "
      "and in the file, by a mini-batch of the example input. {}",
      kKeep);
}

}  // namespace arbalest::jobs
