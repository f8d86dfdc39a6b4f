// Shows a run to the user: progress on stderr, the result on stdout.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "train/context/run_observer.h"

namespace arbalest::jobs {

struct ConsoleOptions {
  std::FILE* results = stdout;
  std::FILE* messages = stderr;
  bool quiet = false;  // no table and no progress; warnings, the result and answers to signals are still shown
  bool bar = false;    // `messages` is a terminal that can rewrite a line; else progress takes one line per interval
  bool color = false;
  int columns = 80;                              // width of the terminal
  std::function<std::string()> epoch_note = {};  // adds a text about an epoch; "": nothing
};

// Failures to write messages are ignored, because a run must outlive the terminal that started it. The owner of
// `results` checks that stream.
class ConsoleReporter final : public RunObserver {
 public:
  explicit ConsoleReporter(const ConsoleOptions& options) : options_(options) {}

  void on_prepare() override;
  void on_start(const RunStart& start) override;
  void on_progress(const RunProgress& progress) override;
  void on_epoch(const EpochRow& row) override;
  void on_resize(const ResizeRow& row) override;
  void on_switch(const SwitchRow& row) override;
  void on_rate_drop(const RateDropRow& row) override;
  void on_rollback(const RollbackRow& row) override;
  void on_checkpoint(const CheckpointRow& row) override;
  void on_warning(const std::string& text) override;
  void on_stop(int signal) override;
  void on_finish(const RunSummary& summary) override;

 private:
  // Writes text that may hold names from outside, after a label that holds none.
  void say(std::string_view text, std::string_view label = "");
  void say_unless_quiet(std::string_view text);  // one or more whole lines
  void write(std::string_view text);
  void show_bar(const RunProgress& progress);

  ConsoleOptions options_;
  RunStart start_;
  bool started_ = false;
  bool bar_shown_ = false;          // whether the last line of `messages` is the bar, or another line to be overwritten
  double next_line_seconds_ = 0.0;  // without a bar: time of the next line
};

}  // namespace arbalest::jobs
