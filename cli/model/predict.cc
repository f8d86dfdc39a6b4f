// arbalest predict RUN [INPUT]...
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/model/chosen_model.h"
#include "cli/model/line_reader.h"
#include "cli/stop_signals.h"
#include "engine/base/error.h"
#include "messages/progress_bar.h"
#include "messages/text.h"
#include "options/loading/evaluation_job.h"
#include "predict/described_model.h"
#include "predict/latency.h"
#include "predict/line_predictor.h"
#include "predict/prediction_input.h"
#include "predict/prediction_text.h"
#include "predict/predictor.h"
#include "report/output_file.h"
#include "saved_model/file_identity.h"

namespace arbalest::cli {

namespace {

struct PredictArguments {
  RunArguments run;
  std::vector<std::string> inputs;
  std::optional<int> top;
  std::string format;
  std::string output;
  bool skip_errors = false;
  bool latency = false;
  bool json = false;

  int most_choices() const { return top.value_or(5); }
  jobs::PredictionFormat form() const {
    if (format == "csv") return jobs::PredictionFormat::kCsv;
    return format == "text" ? jobs::PredictionFormat::kText : jobs::PredictionFormat::kJsonl;
  }
};

// Takes the lines: standard output, or a file that appears when all lines are written.
class Lines {
 public:
  explicit Lines(const std::string& path) {
    if (!path.empty()) file_ = jobs::open_output_file("--output", path);
  }

  // False: nobody reads them any more.
  bool write(std::string_view line) {
    if (file_) {
      file_->write(line);
      return true;
    }
    print_data(line);
    return std::ferror(stdout) == 0;
  }
  bool flush() { return file_ != nullptr || std::fflush(stdout) == 0; }
  void commit() {
    if (file_) file_->commit();
  }
  bool are_on_terminal() const { return !file_ && isatty(STDOUT_FILENO) == 1; }

 private:
  std::unique_ptr<jobs::AtomicFile> file_;
};

// Shows on standard error how far the work is, if that is a terminal on which no lines appear.
class Progress {
 public:
  Progress(std::int64_t examples, const Lines& lines)
      : options_(console_options(false)), examples_(examples), is_shown_(options_.bar && !lines.are_on_terminal()) {}
  ~Progress() {
    if (is_shown_) std::fputs(jobs::kClearLine, stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(std::int64_t done) {
    constexpr std::chrono::milliseconds kInterval{100};
    const auto now = std::chrono::steady_clock::now();
    if (!is_shown_ || now < next_) return;
    next_ = now + kInterval;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double rate = seconds > 0.0 ? static_cast<double>(done) / seconds : 0.0;
    const double left = rate > 0.0 ? static_cast<double>(examples_ - done) / rate : 0.0;
    const std::string text = fmt::format("{} of {}  {:.0f} per second  {} left", jobs::grouped(done),
                                         jobs::grouped(examples_), rate, jobs::duration(left));
    const double fraction = static_cast<double>(done) / static_cast<double>(examples_);
    const std::string bar = jobs::progress_bar(fraction, text, {options_.columns, options_.color});
    std::fputs((jobs::kClearLine + bar).c_str(), stderr);
  }

 private:
  jobs::ConsoleOptions options_;
  std::int64_t examples_;
  bool is_shown_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_ = begin_;
};

// The file that --output replaces must not be read as well.
class OutputIdentity {
 public:
  explicit OutputIdentity(const std::string& output)
      : output_(output), identity_(output.empty() ? jobs::FileIdentity() : jobs::identity_of(output)) {}

  // `input`: a path that need not exist.
  void refuse(const std::string& input) const {
    if (identity_ == jobs::FileIdentity() || jobs::identity_of(input) != identity_) return;
    engine::fail(engine::ErrorKind::kUsage, "--output: '{}' is the input '{}', which would be lost; name another file",
                 output_, input);
  }

 private:
  std::string output_;
  jobs::FileIdentity identity_;
};

// The end of a pass over the examples.
struct Outcome {
  std::int64_t examples = 0;
  std::int64_t failed = 0;
  std::string first_error;
  bool is_whole = true;  // false: stopped by a signal, or nobody reads the lines any more

  void count(const std::string& source, const jobs::Prediction& prediction) {
    ++examples;
    if (prediction.error.empty()) return;
    if (failed++ == 0) first_error = fmt::format("{}: {}", source, prediction.error);
  }
};

Outcome predict_lines(const PredictArguments& arguments, const jobs::DescribedModel& model, Lines& lines,
                      const std::atomic<int>& stop_signal) {
  const jobs::PredictionText text(model.description, arguments.form(), arguments.most_choices(), /*has_files=*/true);
  jobs::LinePredictor predictor(model, arguments.most_choices());
  Outcome outcome;
  if (!lines.write(text.header()) || !lines.flush()) return {.first_error = {}, .is_whole = false};
  const OutputIdentity output(arguments.output);
  LineReader input(stop_signal);
  while (const std::optional<std::string> line = input.next()) {
    if (line->empty()) continue;  // as in a list
    output.refuse(*line);
    const jobs::Prediction prediction = predictor.predict(*line);
    outcome.count(*line, prediction);
    outcome.is_whole = lines.write(text.line(*line, prediction)) && lines.flush();
    if (!outcome.is_whole) break;
  }
  log_warnings(predictor.warnings());
  return outcome;
}

Outcome predict_inputs(const PredictArguments& arguments, const jobs::DescribedModel& model, Lines& lines,
                       const std::atomic<int>& stop_signal) {
  const jobs::PredictionInput input = jobs::open_inputs(model.description, arguments.inputs);
  const OutputIdentity output(arguments.output);
  for (const std::string& each : arguments.inputs) output.refuse(each);
  for (std::int64_t example = 0; input.data->has_files() && example < input.data->size(); ++example) {
    output.refuse(input.data->source(example));
  }
  log_warnings(input.warnings);
  const int top = arguments.most_choices();
  const jobs::PredictionText text(model.description, arguments.form(), top, input.data->has_files());
  jobs::BatchPredictor predictor(model.job, model.tensors, input.data->size());
  Outcome outcome;
  if (!lines.write(text.header())) return {.first_error = {}, .is_whole = false};
  Progress progress(input.data->size(), lines);
  predictor.predict(*input.data, top, [&](std::int64_t example, const jobs::Prediction& prediction) {
    outcome.count(input.data->source(example), prediction);
    outcome.is_whole = lines.write(text.line(input.data->source(example), prediction)) && stop_signal == 0;
    progress.show(example + 1);
    return outcome.is_whole;
  });
  log_warnings(input.data->warnings());
  return outcome;
}

int report_latency(const PredictArguments& arguments, const jobs::DescribedModel& model) {
  const jobs::LatencyReport report = jobs::measure_latency(model.job, model.description, model.tensors);
  if (arguments.json) {
    print_data(jobs::to_json(report).dump(2) + "\n");
  } else {
    print_result(jobs::to_text(report));
  }
  return kOk;
}

void check_latency(const PredictArguments& arguments) {
  using engine::ErrorKind;
  if (!arguments.inputs.empty()) {
    engine::fail(ErrorKind::kUsage, "--latency measures with random examples; leave out '{}'",
                 arguments.inputs.front());
  }
  if (arguments.top || !arguments.format.empty() || !arguments.output.empty() || arguments.skip_errors) {
    engine::fail(
        ErrorKind::kUsage,
        "--latency prints no predictions; leave out --top, --format, --output and --skip-errors (--json prints "
        "the measurement as JSON)");
  }
}

void check(const PredictArguments& arguments) {
  using engine::ErrorKind;
  if (arguments.latency) return check_latency(arguments);
  if (arguments.inputs.empty()) {
    engine::fail(ErrorKind::kUsage,
                 "an input is missing: an image, a folder, a list of images, an array (.npy), or - for standard input");
  }
  if (arguments.inputs.size() > 1 && std::ranges::find(arguments.inputs, "-") != arguments.inputs.end()) {
    engine::fail(ErrorKind::kUsage, "- for standard input must be the only input");
  }
  if (arguments.json) {
    engine::fail(ErrorKind::kUsage, "--json is for --latency; predictions are JSON by default (--format)");
  }
}

// The command was stopped by a signal; lines on standard output show by themselves how far it came.
void print_stop(const PredictArguments& arguments, const Outcome& outcome) {
  if (arguments.output.empty()) return;
  spdlog::warn("stopped after {}; '{}' is not written", jobs::counted(outcome.examples, "example"), arguments.output);
}

int predict(PredictArguments arguments) {
  check(arguments);
  find_run(arguments.run);
  const std::filesystem::path job_file = std::filesystem::path(arguments.run.run) / jobs::kJobFile;
  const jobs::JobOptions job = jobs::load_for_evaluation(job_file.string(), arguments.run.devices);
  const jobs::DescribedModel model = read_chosen(arguments.run, [&](const ChosenModel& chosen) {
    return jobs::read_described_model(job, chosen.path, chosen.sha256);
  });
  log_warnings(model.job.warnings);
  log_warnings(model.warnings);
  if (arguments.latency) return report_latency(arguments, model);
  const std::atomic<int>& stop_signal = catch_stop_signals("arbalest: stopped at once\n");
  Lines lines(arguments.output);
  const Outcome outcome = arguments.inputs.front() == "-" ? predict_lines(arguments, model, lines, stop_signal)
                                                          : predict_inputs(arguments, model, lines, stop_signal);
  if (stop_signal != 0) {
    print_stop(arguments, outcome);
    return kSignalBase + stop_signal;
  }
  if (outcome.is_whole) lines.commit();
  if (outcome.failed == 0) return kOk;
  spdlog::log(arguments.skip_errors ? spdlog::level::warn : spdlog::level::err,
              "{} of {} could not be predicted; the first: {}", jobs::grouped(outcome.failed),
              jobs::counted(outcome.examples, "example"), outcome.first_error);
  return arguments.skip_errors ? kOk : kDataMissing;
}

}  // namespace

Command add_predict(CLI::App& program) {
  auto arguments = std::make_shared<PredictArguments>();
  CLI::App* command =
      program.add_subcommand("predict", "Ask the saved model of a run about images or arrays without labels");
  command->footer(
      "Examples:\n"
      "  arbalest predict runs/pets-20250131-142530 photo.jpg --format text\n"
      "  arbalest predict runs/pets-20250131-142530 holiday/*.jpg --top 1\n"
      "  arbalest predict runs/pets-20250131-142530 photos --top 1 --format csv --output labels.csv\n"
      "  find photos -name '*.jpg' | arbalest predict runs/pets-20250131-142530 -\n"
      "  arbalest predict runs/pets-20250131-142530 --latency\n"
      "\n"
      "An image or row that cannot be read gets a line with an error, and the exit code is 4 (--skip-errors: 0).\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_run_arguments(*command, arguments->run);
  command
      ->add_option("INPUT", arguments->inputs,
                   "Images (JPEG, PNG, WebP), folders of images, and text files with the path of an image per line, "
                   "relative to their folder; or one array (.npy); or -, which reads paths from standard input and "
                   "answers each line at once")
      ->check([](const std::string& name) { return name == "-" ? "" : check_name(name); });
  command->add_option("--top", arguments->top, "Most probable classes to print (default: 5)")
      ->type_name("K")
      ->check(check_decimal)
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--format", arguments->format, "Form of the lines (default: jsonl)")
      ->type_name("jsonl|csv|text")
      ->transform(CLI::IsMember({"jsonl", "csv", "text"}, CLI::ignore_case).description(""));
  command->add_option("--output", arguments->output, "File for the lines, which is written whole or not at all")
      ->type_name("FILE")
      ->check(check_name);
  command->add_flag("--skip-errors", arguments->skip_errors, "Exit with 0 even if some images or rows cannot be read");
  command->add_flag(
      "--latency", arguments->latency,
      "Measure speed instead of predicting: latency percentiles for single examples, images/s for mini-batches");
  command->add_flag("--json", arguments->json, "Print the measurement as JSON");
  return {command, [arguments] { return predict(*arguments); }};
}

}  // namespace arbalest::cli
