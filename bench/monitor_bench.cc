// Measures what TensorBoard's event files and a file for Prometheus cost a run (bench/README.md).
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <stdlib.h>
#include <CLI/CLI.hpp>

#include "bench/support/harness.h"
#include "engine/error.h"
#include "jobs/export/run_files.h"
#include "jobs/report/prometheus/prometheus_file.h"
#include "jobs/report/tensorboard/tensorboard_log.h"

namespace arbalest::bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The lines of a run, and a directory in which they are written once more.
class Lines {
 public:
  explicit Lines(const fs::path& run) {
    std::ifstream job(run / jobs::kJobFile);
    job_text_.assign(std::istreambuf_iterator<char>(job), {});
    std::ifstream log(run / jobs::kMetricsFile);
    for (std::string line; std::getline(log, line);) rows_.push_back(ordered_json::parse(line));
    if (rows_.empty() || rows_.back()["event"] != "finish") {
      engine::fail(engine::ErrorKind::kUsage, "'{}' is no run that has ended", run.string());
    }
    std::string name = (fs::temp_directory_path() / "arbalest-monitor-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) engine::fail(engine::ErrorKind::kInternal, "cannot make '{}'", name);
    directory_ = name;
  }
  ~Lines() { fs::remove_all(directory_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  double run_seconds() const { return rows_.back()["train_seconds"]; }
  std::size_t size() const { return rows_.size(); }
  std::size_t epochs() const { return rows_.back()["epochs"]; }

  // Does what a run does between its start and its end.
  void write_events() const {
    fs::remove_all(directory_ / jobs::kTensorBoardFolder);
    std::ofstream(directory_ / jobs::kMetricsFile) << rows_.front() << "\n";  // the log that a run begins from
    jobs::TensorBoardLog log(directory_);
    log.begin(job_text_);
    for (std::size_t i = 1; i < rows_.size(); ++i) log.add(rows_[i]["event"], rows_[i]);
  }

  void write_prometheus(jobs::PrometheusFile& file) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) file.on_checkpoint({.batch = i, .path = ""});
  }

  fs::path file(const char* name) const { return directory_ / name; }

 private:
  std::string job_text_;
  std::vector<ordered_json> rows_;
  fs::path directory_;
};

int run(const std::string& path, int turns) {
  const Lines lines(path);
  jobs::PrometheusFile prometheus(lines.file("run.prom"));
  jobs::RunStart start;
  start.output_directory = path;
  prometheus.on_start(start);
  const std::vector<Measurement> found =
      measure_in_turns({{"event files", [&] { lines.write_events(); }},
                        {"prometheus file", [&] { lines.write_prometheus(prometheus); }}},
                       {.turns = turns});
  const double share = found[0].seconds / lines.run_seconds();
  const double write = found[1].seconds / static_cast<double>(lines.size());
  const double most_share = write / jobs::PrometheusFile::kPauseSeconds;
  fmt::print(stderr, "event files: {:.3g} s of a run of {:.4g} s, {:.3g} %; a Prometheus file: {:.3g} s, {:.3g} %\n",
             found[0].seconds, lines.run_seconds(), 100.0 * share, write, 100.0 * most_share);
  print_result("price of being watched", {{"run_seconds", lines.run_seconds()},
                                          {"epochs", lines.epochs()},
                                          {"lines", lines.size()},
                                          {"measured", {to_json(found[0]), to_json(found[1])}},
                                          {"event_files_share", share},
                                          {"prometheus_write_seconds", write},
                                          {"prometheus_share", most_share}});
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  std::string path;
  int turns = 21;
  CLI::App app("What do TensorBoard's event files, and a file for Prometheus, cost a run?");
  app.add_option("RUN", path, "Directory of a run that has ended: its lines are written once more")->required();
  app.add_option("--turns", turns)->capture_default_str()->check(CLI::Range(1, 1000));
  return arbalest::bench::run_program(app, argc, argv, [&] { return arbalest::bench::run(path, turns); });
}
