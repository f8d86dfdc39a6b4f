#include "predict/latency.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataflow/input/example.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/base/precision.h"
#include "engine/host/thread_time.h"
#include "messages/text.h"
#include "predict/predictor.h"

namespace arbalest::jobs {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Values that a model can read: integers below their limits, else numbers in [-1, 1). kDrawn examples are
// drawn and lie in memory; example i has the values of example i mod kDrawn.
class RandomExamples final : public dataflow::Dataset {
 public:
  RandomExamples(const ModelDescription& description, std::int64_t examples)
      : input_(input_of(description)), examples_(examples) {
    std::uint32_t state = 1;
    for (std::int64_t i = 0; i < kDrawn; ++i) {
      drawn_.emplace_back(input_);
      for (const dataflow::InputTensor& feature : drawn_.back().features()) fill(feature, state);
    }
  }

  const std::string& name() const noexcept override { return name_; }
  const dataflow::InputDescription& description() const noexcept override { return input_; }
  std::int64_t size() const noexcept override { return examples_; }
  void read_label(std::int64_t /*example*/, const dataflow::InputTensor& label) const override {
    std::ranges::fill(label.bytes(), std::byte{0});
  }
  void read(std::int64_t example, const dataflow::ExamplePosition& /*position*/,
            std::span<const dataflow::InputTensor> features) const override {
    const std::span drawn = drawn_[static_cast<std::size_t>(example % kDrawn)].features();
    for (std::size_t i = 0; i < features.size(); ++i) std::ranges::copy(drawn[i].bytes(), features[i].bytes().begin());
  }

 private:
  static constexpr std::int64_t kDrawn = 16;

  static void fill(const dataflow::InputTensor& feature, std::uint32_t& state) {
    const auto random_bits = [&state] {
      state = state * 1664525U + 1013904223U;  // Numerical Recipes' generator
      return state >> 8U;
    };
    const dataflow::TensorDescription& tensor = feature.description();
    if (tensor.dtype == engine::DType::kInt32) {
      const std::span integers = feature.as<std::int32_t>();
      for (std::size_t i = 0; i < integers.size(); ++i) {
        const auto limit = static_cast<std::uint64_t>(tensor.limit(static_cast<std::int64_t>(i)));
        integers[i] = static_cast<std::int32_t>(random_bits() % limit);
      }
    } else {
      for (float& number : feature.as<float>()) {
        number = static_cast<float>(random_bits()) / static_cast<float>(1U << 23U) - 1.0F;
      }
    }
  }

  std::string name_ = "random examples";
  dataflow::InputDescription input_;
  std::int64_t examples_;
  std::vector<dataflow::Example> drawn_;
};

SingleLatency measure_single(const JobOptions& job, const ModelDescription& description,
                             std::span<const dataflow::NamedTensor> model, int threads, const LatencyOptions& options) {
  constexpr std::int64_t kWarmUp = 16;
  constexpr std::size_t kLeast = 16;
  const RandomExamples examples(description, kWarmUp);
  std::vector<dataflow::Example> inputs;
  for (std::int64_t i = 0; i < kWarmUp; ++i) {
    inputs.emplace_back(examples.description());
    examples.read(i, {}, inputs.back().features());
  }
  SingleLatency latency{.threads = threads};
  const Clock::time_point begin = Clock::now();
  SinglePredictor predictor(job, model, threads);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    predictor.predict(inputs[i].features(), 1);
    if (i == 0) latency.first_ms = 1e3 * seconds_since(begin);
  }
  std::vector<double> times;
  const Clock::time_point measured = Clock::now();
  while (std::cmp_less(times.size(), options.examples) &&
         (times.size() < kLeast || seconds_since(measured) < options.seconds)) {
    const Clock::time_point asked = Clock::now();
    predictor.predict(inputs[times.size() % inputs.size()].features(), 1);
    times.push_back(1e3 * seconds_since(asked));
  }
  std::ranges::sort(times);
  latency.examples = std::ssize(times);
  latency.p50_ms = percentile(times, 0.50);
  latency.p90_ms = percentile(times, 0.90);
  latency.p99_ms = percentile(times, 0.99);
  latency.most_ms = times.back();
  return latency;
}

// Doubles the number of mini-batches until they take long enough, and reports the last pass.
void measure_batches(BatchPredictor& predictor, const ModelDescription& description, double seconds,
                     LatencyReport& report) {
  constexpr std::int64_t kMostPasses = 24;
  std::int64_t batches = predictor.runners();
  for (std::int64_t pass = 0; pass < kMostPasses; ++pass, batches *= 2) {
    const TolerantDataset examples(std::make_unique<const RandomExamples>(description, batches * predictor.batch()));
    const Clock::time_point begin = Clock::now();
    const double used = engine::host::process_cpu_seconds();
    predictor.predict(examples, 1, [](std::int64_t, const Prediction&) { return true; });
    const double taken = seconds_since(begin);
    report.images_per_second = static_cast<double>(examples.size()) / taken;
    report.images_per_cpu_second = static_cast<double>(examples.size()) / (engine::host::process_cpu_seconds() - used);
    if (taken >= seconds / 4) return;
  }
}

}  // namespace

double percentile(std::span<const double> ascending, double fraction) {
  ARBALEST_CHECK(!ascending.empty());
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(ascending.size())));
  return ascending[std::clamp<std::size_t>(rank, 1, ascending.size()) - 1];
}

LatencyReport measure_latency(const JobOptions& job, const ModelDescription& description,
                              std::span<const dataflow::NamedTensor> model, const LatencyOptions& options) {
  LatencyReport report{
      .device = fmt::format("{}", fmt::join(job.devices | std::views::transform(&engine::DeviceSpec::name), ", ")),
      .precision = to_string(job.training.precision),
      .instruction_sets = {},
      .single = {}};
  const engine::DeviceSpec& first = job.devices.front();
  if (!first.is_cuda()) report.instruction_sets = engine::instruction_sets_in_force();
  std::vector<int> threads = {1};
  if (const int cores = engine::core_count(first); cores > 1) threads.push_back(cores);
  for (const int count : threads) report.single.push_back(measure_single(job, description, model, count, options));
  BatchPredictor predictor(job, model, std::numeric_limits<std::int32_t>::max());
  report.batch = predictor.batch();
  report.runners = predictor.runners();
  measure_batches(predictor, description, options.seconds, report);
  return report;
}

namespace {

// Shows at least three digits, down to nanoseconds: small models answer in less than a microsecond.
std::string milliseconds(double value) {
  int digits = 3;
  for (double least = 0.1; value < least && digits < 6; least /= 10.0) ++digits;
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace

std::string to_text(const LatencyReport& report) {
  std::string text = fmt::format("device     {}, {}", report.device, report.precision);
  if (!report.instruction_sets.empty()) text += fmt::format(" ({})", fmt::join(report.instruction_sets, " "));
  std::vector<std::vector<std::string>> rows = {
      {"single examples", "threads", "p50 ms", "p90 ms", "p99 ms", "most ms", "first ms", "examples"}};
  for (const SingleLatency& single : report.single) {
    rows.push_back({"", std::to_string(single.threads), milliseconds(single.p50_ms), milliseconds(single.p90_ms),
                    milliseconds(single.p99_ms), milliseconds(single.most_ms), fmt::format("{:.1f}", single.first_ms),
                    grouped(single.examples)});
  }
  return fmt::format("{}\n{}batches    {} images/s in mini-batches of {}, {} at a time\n", text, table(rows, 1),
                     grouped(std::llround(report.images_per_second)), report.batch, report.runners);
}

nlohmann::ordered_json to_json(const LatencyReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const SingleLatency& single : report.single) {
    rows.push_back({{"threads", single.threads},
                    {"examples", single.examples},
                    {"first_ms", single.first_ms},
                    {"p50_ms", single.p50_ms},
                    {"p90_ms", single.p90_ms},
                    {"p99_ms", single.p99_ms},
                    {"most_ms", single.most_ms}});
  }
  return {{"device", report.device},
          {"precision", report.precision},
          {"instruction_sets", report.instruction_sets},
          {"single", rows},
          {"batch_size", report.batch},
          {"runners", report.runners},
          {"images_per_second", report.images_per_second},
          {"images_per_cpu_second", report.images_per_cpu_second}};
}

}  // namespace arbalest::jobs
