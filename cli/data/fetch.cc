#include "cli/data/fetch.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/stop_signals.h"
#include "fetch/fetch.h"
#include "messages/progress_bar.h"
#include "messages/text.h"

namespace arbalest::cli {

namespace {

struct FetchArguments {
  std::vector<std::string> datasets;
  std::string from;
  std::string data_root;
  bool quiet = false;
};

// Shows how much of a file has come: with a bar, or in a line for each tenth.
class ProgressLine {
 public:
  explicit ProgressLine(const jobs::ConsoleOptions& console) : console_(console) {}
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const jobs::FetchProgress& progress) {
    const double done = static_cast<double>(progress.bytes) / static_cast<double>(progress.all_bytes);
    const auto step = static_cast<int>(done * (console_.bar ? 1000.0 : 10.0));
    if (progress.file == file_ && step == step_) return;
    if (progress.file != file_) end();
    file_ = progress.file;
    step_ = step;
    const std::string text =
        fmt::format("{}: {} of {}, {:.0f} %", file_, jobs::bytes_text(static_cast<std::int64_t>(progress.bytes)),
                    jobs::bytes_text(static_cast<std::int64_t>(progress.all_bytes)), 100.0 * done);
    // Nothing depends on these lines, so a closed standard error stops no transfer.
    const jobs::TerminalSize terminal{.columns = console_.columns, .color = console_.color};
    const std::string line = console_.bar ? jobs::kClearLine + jobs::progress_bar(done, text, terminal) : text + "\n";
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
    is_open_ = console_.bar;
  }

  // Ends a line that would be rewritten.
  void end() {
    if (is_open_) std::fputs("\n", stderr);
    is_open_ = false;
  }

 private:
  const jobs::ConsoleOptions console_;
  bool is_open_ = false;
  std::string file_;
  int step_ = 0;
};

void print(const jobs::FetchReport& report) {
  for (const jobs::FetchedFile& file : report.files) {
    print_result(fmt::format("{}: {} bytes, {}\n", file.path.string(),
                             jobs::grouped(static_cast<std::int64_t>(file.bytes)),
                             file.was_there ? "was there already" : "fetched"));
  }
}

int fetch(const FetchArguments& arguments) {
  const std::atomic<int>& stop_signal =
      catch_stop_signals("arbalest: stopped at once; fetch again to go on where it ended\n");
  std::vector<jobs::DatasetDownloads> datasets;
  for (const std::string& name : arguments.datasets) datasets.push_back(jobs::downloads_of(name));
  ProgressLine line(console_options(arguments.quiet));
  jobs::FetchOptions options;
  options.data_root = data_root(arguments.data_root);
  options.from = arguments.from;
  options.stop = [&stop_signal] { return stop_signal.load() != 0; };
  if (!arguments.quiet) options.progress = [&line](const jobs::FetchProgress& progress) { line.show(progress); };
  options.warn = [&line](const std::string& text) {
    line.end();
    spdlog::warn("{}", text);
  };
  for (const jobs::DatasetDownloads& dataset : datasets) {
    const jobs::FetchReport report = jobs::fetch(dataset, options);
    line.end();
    print(report);
    if (!report.is_stopped) continue;
    spdlog::warn("stopped; fetch again to go on where it ended");
    return kSignalBase + stop_signal.load();
  }
  return kOk;
}

}  // namespace

Command add_data_fetch(CLI::App& data) {
  auto arguments = std::make_shared<FetchArguments>();
  std::vector<std::string> names;
  for (const jobs::DatasetDownloads& known : jobs::known_downloads()) names.push_back(known.name);
  CLI::App* command = data.add_subcommand("fetch", "Download a published dataset into the data root");
  command->footer(
      "Examples:\n"
      "  arbalest data fetch mnist\n"
      "  arbalest data fetch cifar10 cifar100 --data-root /data\n"
      "  arbalest data fetch mnist --from https://mirror.example/datasets/mnist\n"
      "\n"
      "A download gets its final name only after its length and SHA-256 have been verified. A download\n"
      "that broke off or was stopped goes on where it ended. Files that are there are checked and kept.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("DATASET", arguments->datasets, fmt::format("What to fetch: {}", fmt::join(names, ", ")))
      ->required();
  command
      ->add_option("--from", arguments->from,
                   "A mirror: the URL of a folder, or a local folder, with the published files (default: the places "
                   "that publish them)")
      ->type_name("URL|DIR")
      ->check(check_name);
  add_data_root(*command, arguments->data_root);
  command->add_flag("-q,--quiet", arguments->quiet, "Show no progress");
  return {command, [arguments] { return fetch(*arguments); }};
}

}  // namespace arbalest::cli
