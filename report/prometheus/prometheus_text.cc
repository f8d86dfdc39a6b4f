#include "report/prometheus/prometheus_text.h"

#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "messages/text_encoding.h"

namespace arbalest::jobs {

namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0.0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void PrometheusText::add(const Metric& metric, std::optional<double> value) {
  if (value) add(metric, {}, *value);
}

void PrometheusText::add(const Metric& metric, const PrometheusLabels& labels, double value) {
  add_head(metric);
  add_sample(metric, labels, value);
}

void PrometheusText::add_states(const Metric& metric, const char* label, const std::vector<std::string>& states,
                                std::string_view present) {
  add_head(metric);
  for (const std::string& state : states) add_sample(metric, {{label, state}}, state == present ? 1.0 : 0.0);
}

void PrometheusText::add_head(const Metric& metric) {
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                 metric.type == Type::kCounter ? "counter" : "gauge");
}

void PrometheusText::add_sample(const Metric& metric, const PrometheusLabels& labels, double value) {
  PrometheusLabels all = common_;
  all.insert(all.end(), labels.begin(), labels.end());
  std::string list;
  for (const auto& [name, label] : all) {
    fmt::format_to(std::back_inserter(list), "{}{}=\"{}\"", list.empty() ? "" : ",", name,
                   safe_text(label, TextFor::kPrometheus));
  }
  fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", metric.name, list, number(value));
}

}  // namespace arbalest::jobs
