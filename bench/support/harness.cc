#include "bench/support/harness.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "cli/exit_codes.h"
#include "engine/base/error.h"
#include "engine/host/topology.h"

namespace arbalest::bench {

namespace {

double seconds_of(const std::function<void()>& work, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the interpolated value below which `fraction` of the sorted samples are.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Summary summarize(std::vector<double> values) {
  ARBALEST_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
}

std::vector<Measurement> measure_in_turns(const std::vector<Contender>& contenders, const MeasureOptions& options) {
  ARBALEST_CHECK(options.turns > 0 && options.warm_up_turns > 0);
  std::vector<int> calls(contenders.size(), 1);
  for (int turn = 0; turn < options.warm_up_turns; ++turn) {
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      const double seconds = seconds_of(contenders[c].work, calls[c]) / calls[c];
      calls[c] = std::max(1, static_cast<int>(options.seconds_per_turn / std::max(seconds, 1e-9)));
    }
  }
  std::vector<std::vector<double>> samples(contenders.size());
  for (int turn = 0; turn < options.turns; ++turn) {
    for (std::size_t c = 0; c < contenders.size(); ++c) {
      samples[c].push_back(seconds_of(contenders[c].work, calls[c]) / calls[c]);
    }
  }
  std::vector<Measurement> measurements;
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    const double fastest = *std::min_element(samples[c].begin(), samples[c].end());
    const Summary summary = summarize(std::move(samples[c]));
    measurements.push_back({contenders[c].name, summary.median, fastest, summary.spread(), options.turns, calls[c]});
  }
  return measurements;
}

nlohmann::ordered_json describe_machine() {
  double load = 0.0;
  const bool known = getloadavg(&load, 1) == 1;
  return {{"processor", engine::host::processor_name()},
          {"instruction_sets", engine::host::instruction_sets()},
          {"usable_cores", engine::host::usable_cores()},
          {"load_average", known ? nlohmann::ordered_json(load) : nlohmann::ordered_json()}};
}

void print_result(const std::string& question, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line = {{"question", question}, {"machine", describe_machine()}};
  line.update(fields);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& work) {
  try {
    app.parse(argc, argv);
    return work();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kOk : cli::kUsageError;
  } catch (const engine::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return cli::exit_code(error.kind());
  }
}

nlohmann::ordered_json to_json(const Summary& summary) {
  return {{"median", summary.median},
          {"first_quartile", summary.first_quartile},
          {"third_quartile", summary.third_quartile},
          {"spread", summary.spread()}};
}

nlohmann::ordered_json to_json(const Measurement& measurement) {
  return {{"name", measurement.name},
          {"seconds", measurement.seconds},
          {"fastest_seconds", measurement.fastest_seconds},
          {"spread", measurement.spread},
          {"turns", measurement.turns},
          {"calls_per_turn", measurement.calls_per_turn}};
}

}  // namespace arbalest::bench
