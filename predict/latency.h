// Measures how fast a saved model answers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "dataflow/parameter_layout.h"
#include "options/job_options.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

// Times from an example in host memory to its prediction, one after the other. Percentiles by nearest rank.
struct SingleLatency {
  int threads = 1;
  std::int64_t examples = 0;  // measured, after those that warm up
  double first_ms = 0.0;      // from the saved model in memory to the first answer
  double p50_ms = 0.0;
  double p90_ms = 0.0;
  double p99_ms = 0.0;
  double most_ms = 0.0;
};

struct LatencyReport {
  std::string device;
  std::string precision;
  std::vector<std::string> instruction_sets;  // of a CPU
  std::vector<SingleLatency> single;          // with one thread, and with all cores of a CPU if it has several
  std::int64_t batch = 1;                     // examples of a mini-batch
  int runners = 1;                            // mini-batches under way at a time
  double images_per_second = 0.0;             // in mini-batches that lie in memory
  double images_per_cpu_second = 0.0;         // the same by the processor time of the program's threads
};

struct LatencyOptions {
  std::int64_t examples = 1024;  // of each row of `single`, at most
  double seconds = 10.0;         // of each measurement, about, if those take longer
};

// `model`: as in BatchPredictor. The examples are random, because their values do not matter.
LatencyReport measure_latency(const JobOptions& job, const ModelDescription& description,
                              std::span<const dataflow::NamedTensor> model, const LatencyOptions& options = {});

// The value at a fraction of ascending values: the smallest with at least that fraction at or below it.
double percentile(std::span<const double> ascending, double fraction);

std::string to_text(const LatencyReport& report);
nlohmann::ordered_json to_json(const LatencyReport& report);

}  // namespace arbalest::jobs
