// The text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace arbalest::jobs {

using PrometheusLabels = std::vector<std::pair<std::string, std::string>>;  // name and value

// Adds one metric after the other to a text. Each may be added once only.
class PrometheusText {
 public:
  enum class Type { kGauge, kCounter };
  struct Metric {
    const char* name;
    Type type;
    const char* help;  // one line without a backslash
  };

  // `common`: labels of every sample
  explicit PrometheusText(PrometheusLabels common) : common_(std::move(common)) {}

  // Adds a metric with one sample; nothing if there is no value.
  void add(const Metric& metric, std::optional<double> value);
  // Adds a metric with one sample that has more labels.
  void add(const Metric& metric, const PrometheusLabels& labels, double value);
  // Adds a metric with a sample for each of `states`: 1 for `present`, 0 for the others.
  void add_states(const Metric& metric, const char* label, const std::vector<std::string>& states,
                  std::string_view present);

  const std::string& text() const noexcept { return text_; }

 private:
  void add_head(const Metric& metric);
  void add_sample(const Metric& metric, const PrometheusLabels& labels, double value);

  PrometheusLabels common_;
  std::string text_;
};

}  // namespace arbalest::jobs
