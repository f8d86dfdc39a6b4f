#include "options/readers/optimizer_reader.h"

#include "dataflow/models/fields/field_ranges.h"

namespace arbalest::jobs {

namespace {

engine::UpdateRule read_rule(const v1::Optimizer& optimizer) {
  if (optimizer.has_rmsprop()) {
    const v1::RmsProp& rule = optimizer.rmsprop();
    return engine::RmsProp{rule.smoothing(), rule.momentum(), rule.epsilon(), rule.weight_decay()};
  }
  if (optimizer.has_adamw()) {
    const v1::AdamW& rule = optimizer.adamw();
    return engine::AdamW{rule.beta1(), rule.beta2(), rule.epsilon(), rule.weight_decay()};
  }
  if (optimizer.has_adagrad()) {
    return engine::Adagrad{optimizer.adagrad().epsilon(), optimizer.adagrad().weight_decay()};
  }
  const v1::Sgd& rule = optimizer.sgd();
  return engine::Sgd{rule.momentum(), rule.nesterov(), rule.weight_decay()};
}

}  // namespace

OptimizerOptions read_optimizer(const v1::Optimizer& optimizer, dataflow::FieldIssues& issues) {
  dataflow::check_fields(optimizer, "optimizer", issues);
  if (optimizer.sgd().nesterov() && optimizer.sgd().momentum() == 0.0F) {
    issues.add("optimizer.sgd.nesterov", "nesterov needs a momentum above 0, such as 0.9");
  }
  OptimizerOptions options;
  options.rule = read_rule(optimizer);
  if (optimizer.has_clip_gradient_norm()) options.clip_gradient_norm = optimizer.clip_gradient_norm();
  for (const int group : optimizer.exclude_from_weight_decay()) {
    if (group == v1::Optimizer::BIASES) options.without_decay.push_back(dataflow::ParameterKind::kBias);
    if (group == v1::Optimizer::NORMALIZATION) {
      options.without_decay.push_back(dataflow::ParameterKind::kNormalization);
    }
  }
  return options;
}

std::string optimizer_warning(const OptimizerOptions& optimizer) {
  if (optimizer.without_decay.empty() || engine::weight_decay_of(optimizer.rule) > 0.0F) return "";
  return "exclude_from_weight_decay changes nothing: weight_decay is 0";
}

}  // namespace arbalest::jobs
