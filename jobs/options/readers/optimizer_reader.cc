#include "jobs/options/readers/optimizer_reader.h"

namespace arbalest::jobs {

using dataflow::above;
using dataflow::below;
using dataflow::out_of_range;
using dataflow::Range;

namespace {

constexpr Range<float> kShare = below(0.0F, 1.0F);  // fraction of a mean or sum that is kept
constexpr Range<float> kDecay{0.0F, 1.0F};
constexpr Range<float> kEpsilon{1e-12F, 10.0F};
constexpr Range<float> kNorm = above(0.0F, 1e9F);

void fill(v1::Sgd& sgd) {
  const engine::Sgd defaults;
  if (!sgd.has_momentum()) sgd.set_momentum(defaults.momentum);
  if (!sgd.has_nesterov()) sgd.set_nesterov(defaults.nesterov);
  if (!sgd.has_weight_decay()) sgd.set_weight_decay(defaults.weight_decay);
}

void fill(v1::RmsProp& rms_prop) {
  const engine::RmsProp defaults;
  if (!rms_prop.has_smoothing()) rms_prop.set_smoothing(defaults.smoothing);
  if (!rms_prop.has_momentum()) rms_prop.set_momentum(defaults.momentum);
  if (!rms_prop.has_epsilon()) rms_prop.set_epsilon(defaults.epsilon);
  if (!rms_prop.has_weight_decay()) rms_prop.set_weight_decay(defaults.weight_decay);
}

void fill(v1::AdamW& adam_w) {
  const engine::AdamW defaults;
  if (!adam_w.has_beta1()) adam_w.set_beta1(defaults.beta1);
  if (!adam_w.has_beta2()) adam_w.set_beta2(defaults.beta2);
  if (!adam_w.has_epsilon()) adam_w.set_epsilon(defaults.epsilon);
  if (!adam_w.has_weight_decay()) adam_w.set_weight_decay(defaults.weight_decay);
}

void fill(v1::Adagrad& adagrad) {
  const engine::Adagrad defaults;
  if (!adagrad.has_epsilon()) adagrad.set_epsilon(defaults.epsilon);
  if (!adagrad.has_weight_decay()) adagrad.set_weight_decay(defaults.weight_decay);
}

class OptimizerReader {
 public:
  OptimizerReader(const v1::Optimizer& optimizer, dataflow::FieldIssues& issues)
      : optimizer_(optimizer), issues_(issues) {}

  OptimizerOptions read() {
    OptimizerOptions options;
    options.rule = read_rule();
    if (optimizer_.has_clip_gradient_norm()) {
      options.clip_gradient_norm = optimizer_.clip_gradient_norm();
      check("clip_gradient_norm", optimizer_.clip_gradient_norm(), kNorm);
    }
    for (const int group : optimizer_.exclude_from_weight_decay()) {
      if (group == v1::Optimizer::BIASES) options.without_decay.push_back(dataflow::ParameterKind::kBias);
      if (group == v1::Optimizer::NORMALIZATION) {
        options.without_decay.push_back(dataflow::ParameterKind::kNormalization);
      }
    }
    return options;
  }

 private:
  // `field`: path within the optimizer, "sgd.momentum".
  void check(const std::string& field, float value, const Range<float>& range) {
    issues_.add("optimizer." + field, out_of_range(field.substr(field.rfind('.') + 1), value, range));
  }

  engine::UpdateRule read_rule() {
    if (optimizer_.has_rmsprop()) return read_rms_prop(optimizer_.rmsprop());
    if (optimizer_.has_adamw()) return read_adam_w(optimizer_.adamw());
    if (optimizer_.has_adagrad()) return read_adagrad(optimizer_.adagrad());
    return read_sgd(optimizer_.sgd());
  }

  engine::UpdateRule read_sgd(const v1::Sgd& sgd) {
    check("sgd.momentum", sgd.momentum(), kShare);
    check("sgd.weight_decay", sgd.weight_decay(), kDecay);
    if (sgd.nesterov() && sgd.momentum() == 0.0F) {
      issues_.add("optimizer.sgd.nesterov", "nesterov needs a momentum above 0, such as 0.9");
    }
    return engine::Sgd{sgd.momentum(), sgd.nesterov(), sgd.weight_decay()};
  }

  engine::UpdateRule read_rms_prop(const v1::RmsProp& rms_prop) {
    check("rmsprop.smoothing", rms_prop.smoothing(), kShare);
    check("rmsprop.momentum", rms_prop.momentum(), kShare);
    check("rmsprop.epsilon", rms_prop.epsilon(), kEpsilon);
    check("rmsprop.weight_decay", rms_prop.weight_decay(), kDecay);
    return engine::RmsProp{rms_prop.smoothing(), rms_prop.momentum(), rms_prop.epsilon(), rms_prop.weight_decay()};
  }

  engine::UpdateRule read_adam_w(const v1::AdamW& adam_w) {
    check("adamw.beta1", adam_w.beta1(), kShare);
    check("adamw.beta2", adam_w.beta2(), kShare);
    check("adamw.epsilon", adam_w.epsilon(), kEpsilon);
    check("adamw.weight_decay", adam_w.weight_decay(), kDecay);
    return engine::AdamW{adam_w.beta1(), adam_w.beta2(), adam_w.epsilon(), adam_w.weight_decay()};
  }

  engine::UpdateRule read_adagrad(const v1::Adagrad& adagrad) {
    check("adagrad.epsilon", adagrad.epsilon(), kEpsilon);
    check("adagrad.weight_decay", adagrad.weight_decay(), kDecay);
    return engine::Adagrad{adagrad.epsilon(), adagrad.weight_decay()};
  }

  const v1::Optimizer& optimizer_;
  dataflow::FieldIssues& issues_;
};

}  // namespace

void fill_optimizer(v1::Optimizer& optimizer) {
  if (optimizer.has_rmsprop()) return fill(*optimizer.mutable_rmsprop());
  if (optimizer.has_adamw()) return fill(*optimizer.mutable_adamw());
  if (optimizer.has_adagrad()) return fill(*optimizer.mutable_adagrad());
  fill(*optimizer.mutable_sgd());
}

OptimizerOptions read_optimizer(const v1::Optimizer& optimizer, dataflow::FieldIssues& issues) {
  return OptimizerReader(optimizer, issues).read();
}

std::string optimizer_warning(const OptimizerOptions& optimizer) {
  if (optimizer.without_decay.empty() || engine::weight_decay_of(optimizer.rule) > 0.0F) return "";
  return "exclude_from_weight_decay changes nothing: weight_decay is 0";
}

}  // namespace arbalest::jobs
