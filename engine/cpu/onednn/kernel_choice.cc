#include "engine/cpu/onednn/kernel_choice.h"

namespace arbalest::engine::cpu {

dnnl::primitive_attr primitive_attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return attributes;
}

dnnl::prop_kind direction(OperatorMode mode) {
  return mode == OperatorMode::kTraining ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
}

dnnl::algorithm algorithm_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kRelu:
    case ActivationKind::kLeakyRelu: return dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
    case ActivationKind::kTanh: return dnnl::algorithm::eltwise_tanh_use_dst_for_bwd;
    case ActivationKind::kSigmoid: return dnnl::algorithm::eltwise_logistic_use_dst_for_bwd;
    case ActivationKind::kGelu: return dnnl::algorithm::eltwise_gelu_erf;
    case ActivationKind::kSilu: return dnnl::algorithm::eltwise_swish;
    case ActivationKind::kRelu6:  // the gradient passes where 0 < output < 6; a NaN becomes 0, as in oneDNN's ReLU
      return dnnl::algorithm::eltwise_clip_v2_use_dst_for_bwd;
    case ActivationKind::kHardSwish: return dnnl::algorithm::eltwise_hardswish;
  }
  fail(ErrorKind::kInternal, "unknown activation {}", static_cast<int>(kind));
}

float alpha_of(const ActivationFunction& f) {
  if (f.kind == ActivationKind::kLeakyRelu) return f.slope;
  return f.kind == ActivationKind::kSilu ? 1.0F : 0.0F;
}

float beta_of(const ActivationFunction& f) { return f.kind == ActivationKind::kRelu6 ? kRelu6Limit : 0.0F; }

dnnl::primitive_attr followed_by(const ActivationFunction& f) {
  dnnl::post_ops after;
  after.append_eltwise(1.0F, algorithm_of(f.kind), alpha_of(f), beta_of(f));
  dnnl::primitive_attr attributes = primitive_attributes();
  attributes.set_post_ops(after);
  return attributes;
}

bool is_reference(const dnnl::primitive_desc_base& description) {
  // "ref:any" and "bnorm_ref:any" are references, but "gemm:ref" is a convolution by matrix products.
  return std::string_view(description.impl_info_str()).find("ref:") != std::string_view::npos;
}

bool can_be_made(const dnnl::primitive_desc_base& description) {
  try {
    const dnnl::primitive primitive(description.get());
    return true;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_runtime_error) throw;
    return false;
  }
}

}  // namespace arbalest::engine::cpu
