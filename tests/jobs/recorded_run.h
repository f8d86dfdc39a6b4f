// Trains and reads what the runs write.
#pragma once

#include <atomic>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/run_directory.h"
#include "tests/support/temporary_directory.h"
#include "train/train.h"

namespace arbalest::jobs {

// The data are in root(), and output() is the directory of the newest run.
class RecordedRun {
 public:
  RunSummary train(const JobOptions& job, const std::atomic<int>* stop_signal = nullptr) {
    ++runs_;
    RunDirectory directory(output(), job.name);
    RunContext context = this->context();
    context.output_directory = output().string();
    context.stop_signal = stop_signal;
    context.observers = {&directory};
    return jobs::train(job, context);
  }

  RunContext context() const {
    RunContext context;
    context.data_root = root_.path().string();
    return context;
  }
  std::filesystem::path root() const { return root_.path(); }
  std::filesystem::path output() const { return root_ / ("run" + std::to_string(runs_)); }
  std::string model() const { return (output() / "model.safetensors").string(); }
  nlohmann::json summary() const { return nlohmann::json::parse(tests::read_text(output() / "summary.json")); }

  // The lines of metrics.jsonl that tell of this kind of event.
  std::vector<nlohmann::json> events(const std::string& name) const {
    std::vector<nlohmann::json> found;
    std::istringstream lines(tests::read_text(output() / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == name) found.push_back(event);
    }
    return found;
  }

 private:
  tests::TemporaryDirectory root_;
  int runs_ = 0;
};

}  // namespace arbalest::jobs
