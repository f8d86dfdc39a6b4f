#include "options/parameters/parameter_rules_reader.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/parameter_rules.h"
#include "options/parameters/parameter_patterns.h"

namespace arbalest::jobs {

using dataflow::NamedParameter;

namespace {

struct Multiplier {
  std::vector<NamePattern> parameters;
  float factor = 1.0F;
};

class RulesReader {
 public:
  RulesReader(const v1::Job& job, std::shared_ptr<const dataflow::Graph> graph, dataflow::FieldIssues& issues)
      : job_(job), graph_(std::move(graph)), issues_(issues) {
    if (graph_ != nullptr) parameters_ = dataflow::named_parameters(*graph_);
  }

  std::shared_ptr<const dataflow::Graph> read() {
    const std::size_t issues_before = issues_.all().size();
    freeze_ = read_patterns("training.freeze", job_.training().freeze(), graph_.get(), issues_);
    for (int i = 0; i < job_.learning_rate().multiplier_size(); ++i) read_multiplier(i);
    const bool are_sound = issues_.all().size() == issues_before && !issues_.has_within("learning_rate.multiplier");
    if (graph_ == nullptr || !are_sound) return graph_;
    check_frozen();
    for (std::size_t i = 0; i < multipliers_.size(); ++i) check_multiplier(i);
    const bool has_rules = !freeze_.empty() || !multipliers_.empty();
    if (!has_rules || issues_.all().size() > issues_before) return graph_;
    return std::make_shared<const dataflow::Graph>(
        dataflow::with_rules(*graph_, [&](const std::string& name) { return rule_of(name); }));
  }

 private:
  void read_multiplier(int index) {
    const v1::LearningRate::Multiplier& message = job_.learning_rate().multiplier(index);
    const std::string path = fmt::format("learning_rate.multiplier[{}]", index);
    Multiplier& multiplier = multipliers_.emplace_back();
    multiplier.parameters = read_patterns(path + ".parameters", message.parameters(), graph_.get(), issues_);
    multiplier.factor = message.factor();
  }

  // The running statistics of a layer belong together, and something must be left to train.
  void check_frozen() {
    std::map<std::string, std::vector<const NamedParameter*>> statistics;  // by layer
    bool trains = false;
    for (const NamedParameter& parameter : parameters_) {
      trains |= !parameter.spec.is_statistic() && !matches_any(freeze_, parameter.name);
      if (parameter.spec.is_statistic()) statistics[std::string(layer_of(parameter.name))].push_back(&parameter);
    }
    const auto is_frozen = [&](const NamedParameter* parameter) { return matches_any(freeze_, parameter->name); };
    for (const auto& [layer, of_layer] : statistics) {
      const auto frozen = std::ranges::find_if(of_layer, is_frozen);
      const auto moving = std::ranges::find_if_not(of_layer, is_frozen);
      if (frozen == of_layer.end() || moving == of_layer.end()) continue;
      const auto pattern =
          std::ranges::find_if(freeze_, [&](const NamePattern& one) { return one.matches((*frozen)->name); });
      issues_.add(fmt::format("training.freeze[{}]", pattern - freeze_.begin()),
                  fmt::format("\"{}\" freezes '{}' but not '{}'; freeze both, as with \"{}.running_*\"",
                              pattern->text(), (*frozen)->name, (*moving)->name, layer));
    }
    if (trains) return;
    issues_.add(fmt::format("training.freeze[{}]", freeze_.size() - 1),
                "freeze leaves no parameter to train; freeze fewer layers");
  }

  void check_multiplier(std::size_t index) {
    const Multiplier& multiplier = multipliers_[index];
    for (std::size_t i = 0; i < multiplier.parameters.size(); ++i) {
      const NamePattern& pattern = multiplier.parameters[i];
      const bool changes = std::ranges::any_of(parameters_, [&](const NamedParameter& parameter) {
        return pattern.matches(parameter.name) && !parameter.spec.is_statistic() &&
               !matches_any(freeze_, parameter.name);
      });
      if (changes) continue;
      issues_.add(
          fmt::format("learning_rate.multiplier[{}].parameters[{}]", index, i),
          fmt::format("\"{}\" matches only frozen parameters or running statistics, which have no learning rate",
                      pattern.text()));
    }
  }

  dataflow::ParameterRule rule_of(const std::string& name) const {
    dataflow::ParameterRule rule{.is_frozen = matches_any(freeze_, name)};
    for (const Multiplier& multiplier : multipliers_) {
      if (matches_any(multiplier.parameters, name)) rule.learning_rate_multiplier = multiplier.factor;
    }
    return rule;
  }

  const v1::Job& job_;
  std::shared_ptr<const dataflow::Graph> graph_;
  dataflow::FieldIssues& issues_;
  std::vector<NamedParameter> parameters_;  // of graph_
  std::vector<NamePattern> freeze_;
  std::vector<Multiplier> multipliers_;
};

}  // namespace

std::shared_ptr<const dataflow::Graph> read_parameter_rules(const v1::Job& job,
                                                            std::shared_ptr<const dataflow::Graph> graph,
                                                            dataflow::FieldIssues& issues) {
  return RulesReader(job, std::move(graph), issues).read();
}

}  // namespace arbalest::jobs
