#include "tests/cudnn/question.h"

#include <algorithm>
#include <utility>

namespace arbalest::tests::cudnn {

namespace {

using engine::Precision;
using engine::Shape;
using engine::cuda::Order;

cudnnDataType_t data_type(Precision precision) {
  return precision == Precision::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

std::vector<std::int64_t> dense_strides(const Shape& shape, Order order) {
  const std::int64_t image = shape[1] * shape[2] * shape[3];
  if (order == Order::kChannelsLast) return {image, 1, shape[3] * shape[1], shape[1]};
  return {image, shape[2] * shape[3], shape[3], 1};
}

Descriptor describe_tensor(const Library& library, std::int64_t id, const Shape& shape, Order order,
                           cudnnDataType_t type) {
  constexpr std::int64_t kAlignment = 16;  // our buffers have at least 64
  Descriptor tensor(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::vector<std::int64_t>(shape.begin(), shape.end()));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, dense_strides(shape, order));
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::vector{id});
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::vector{kAlignment});
  tensor.finalize();
  return tensor;
}

Descriptor describe_window(const Library& library, const engine::Window& window) {
  const std::vector padding{window.padding.height, window.padding.width};
  Descriptor described(library, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  described.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::vector<std::int64_t>{2});
  described.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  described.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  described.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding);
  described.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding);
  described.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::vector{window.dilation.height, window.dilation.width});
  described.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::vector{window.stride.height, window.stride.width});
  described.finalize();
  return described;
}

// The attribute names of one kind of operation.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t input, weights, output, window, alpha, beta;
};

const OperationNames& names_of(Pass pass) {
  static const OperationNames forward{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static const OperationNames weight_gradient{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  static const OperationNames input_gradient{CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                             CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  if (pass == Pass::kForward) return forward;
  return pass == Pass::kWeightGradient ? weight_gradient : input_gradient;
}

Descriptor describe_graph(const Library& library, const Convolution& of, Pass pass, bool float_gradient) {
  const OperationNames& names = names_of(pass);
  const cudnnDataType_t type = data_type(of.precision);
  const bool widened = pass == Pass::kWeightGradient && float_gradient;
  const Descriptor input = describe_tensor(library, 'x', of.input, of.order, type);
  const Descriptor weights = describe_tensor(library, 'w', of.weights, of.order, widened ? CUDNN_DATA_FLOAT : type);
  const Descriptor output = describe_tensor(library, 'y', of.output, of.order, type);
  const Descriptor window = describe_window(library, of.window);
  Descriptor operation(library, names.type);
  operation.set(names.input, input);
  operation.set(names.weights, weights);
  operation.set(names.output, output);
  operation.set(names.window, window);
  operation.set(names.alpha, 1.0F);
  operation.set(names.beta, 0.0F);
  operation.finalize();
  Descriptor graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  return graph;
}

struct Notes {
  bool suits = false;  // repeatable, exact enough, not compiled at run time
  bool tensor_cores = false;
};

Notes read_notes(const Descriptor& engine, Precision precision) {
  const std::vector<cudnnBackendNumericalNote_t> numerical = engine.numerical_notes();
  const std::vector<cudnnBackendBehaviorNote_t> behavior = engine.behavior_notes();
  const auto has = [&](cudnnBackendNumericalNote_t note) { return std::ranges::count(numerical, note) > 0; };
  const bool tensor_cores = has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  const bool exact = !has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) &&
                     !has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
  const bool compiled = std::ranges::count(behavior, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) > 0;
  return {exact && !compiled && (!tensor_cores || precision != Precision::kFloat32), tensor_cores};
}

// Returns engine configurations from cuDNN's heuristics, with the expected fastest first, followed by its fallbacks.
// Neither of the two lists is complete.
std::vector<Descriptor> list_configurations(const Library& library, const Descriptor& device, const Descriptor& graph) {
  std::vector<Descriptor> configurations;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristics(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    heuristics.finalize();
    for (Descriptor& found :
         heuristics.get_descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) {
      configurations.push_back(std::move(found));
    }
  }
  return configurations;
}

// Returns the bytes of workspace, or nullopt if cuDNN cannot build the plan.
std::optional<std::int64_t> build_plan(const Library& library, const Descriptor& device,
                                       const Descriptor& configuration) {
  try {
    Descriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    plan.finalize();
    return plan.get_integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  } catch (const CallFailed&) {
    return std::nullopt;  // the caller tries the next engine, as the CUDA device does
  }
}

}  // namespace

Answer ask(const Library& library, const Descriptor& device, const Convolution& convolution, Pass pass,
           std::int64_t allowed_workspace_bytes, bool float_gradient) {
  const Descriptor graph = describe_graph(library, convolution, pass, float_gradient);
  const std::vector<Descriptor> configurations = list_configurations(library, device, graph);
  Answer answer;
  answer.candidates = static_cast<int>(configurations.size());
  for (std::size_t rank = 0; rank < configurations.size(); ++rank) {
    const Descriptor engine =
        configurations[rank].get_descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    const Notes notes = read_notes(engine, convolution.precision);
    if (!notes.suits) continue;
    ++(notes.tensor_cores ? answer.with_cores : answer.without_cores);
    if (answer.engine) continue;
    const std::optional<std::int64_t> workspace = build_plan(library, device, configurations[rank]);
    if (!workspace || *workspace > allowed_workspace_bytes) continue;
    answer.engine = Engine{engine.get_integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX), static_cast<int>(rank),
                           notes.tensor_cores, *workspace};
  }
  return answer;
}

}  // namespace arbalest::tests::cudnn
