#include "interchange/import/operators.h"

#include <map>
#include <string_view>

#include "interchange/import/formulas/formulas.h"

namespace arbalest::jobs {

Operator find_operator(const std::string& kind) {
  static const std::map<std::string_view, Operator> kOperators = {
      {"Add", import_add},
      {"AveragePool", import_average_pool},
      {"BatchNormalization", import_batch_norm},
      {"Cast", import_cast},
      {"CastLike", import_cast_like},
      {"Clip", import_clip},
      {"Concat", import_concat},
      {"Conv", import_conv},
      {"Div", import_div},
      {"Dropout", import_dropout},
      {"Erf", import_erf},
      {"Expand", import_expand},
      {"Flatten", import_flatten},
      {"Gather", import_gather},
      {"Gelu", import_gelu},
      {"Gemm", import_gemm},
      {"GlobalAveragePool", import_global_average_pool},
      {"GlobalMaxPool", import_global_max_pool},
      {"HardSigmoid", import_hard_sigmoid},
      {"HardSwish", import_activation},
      {"Identity", import_identity},
      {"LRN", import_lrn},
      {"LeakyRelu", import_leaky_relu},
      {"Less", import_less},
      {"MatMul", import_matmul},
      {"MaxPool", import_max_pool},
      {"Mul", import_mul},
      {"Neg", import_neg},
      {"PRelu", import_prelu},
      {"Pad", import_pad},
      {"RandomUniformLike", import_random_uniform_like},
      {"ReduceMean", import_reduce_mean},
      {"ReduceSum", import_reduce_sum},
      {"Relu", import_activation},
      {"Reshape", import_reshape},
      {"Shape", import_shape},
      {"Sigmoid", import_activation},
      {"Softmax", import_softmax},
      {kSpelledNorm, import_spelled_norm},
      {"Squeeze", import_squeeze},
      {"Sub", import_sub},
      {"Sum", import_add},
      {"Tanh", import_activation},
      {"Transpose", import_transpose},
      {"Unsqueeze", import_unsqueeze},
  };
  const auto found = kOperators.find(kind);
  return found == kOperators.end() ? nullptr : found->second;
}

}  // namespace arbalest::jobs
