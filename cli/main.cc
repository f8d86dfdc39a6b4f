// The program `arbalest`.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/error_report.h"
#include "cli/exit_codes.h"
#include "cli/processes.h"
#include "cli/stop_signals.h"
#include "cli/usage_error.h"
#include "messages/failure.h"
#include "messages/source_commit.h"

namespace arbalest::cli {

namespace {

constexpr const char* kDescription =
    "Examples:\n"
    "  arbalest train configs/lenet-digits.txtpb             train on the built-in digits\n"
    "  arbalest train JOB --set training.batch_size=16       change a field of the job\n"
    "  arbalest evaluate runs/lenet-digits-20250131-142530   measure the saved model again\n"
    "  arbalest predict runs/pets-20250131-142530 photo.jpg  ask the saved model about an image\n"
    "  arbalest runs                                         the runs below runs/, their status and accuracy\n"
    "  arbalest help learning_rate.base                      what a field of a job means\n"
    "  arbalest inspect JOB                                  layers, bytes, how many learners fit\n"
    "  arbalest tune JOB                                     how many learners per device train it fastest\n"
    "  arbalest bench JOB --target 0.99                      how long it takes to reach an accuracy\n"
    "  arbalest export RUN --output model.onnx               the trained model for other programs\n"
    "  arbalest data verify JOB                              read every example of its datasets\n"
    "\n"
    "Arbalest trains neural networks with many small-batch learners per device.";

// Otherwise a file that we open could get the number of a standard stream that the caller has closed.
void open_closed_standard_streams() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // Reading finds the end at once, and writing fails.
    static_cast<void>(descriptor == STDIN_FILENO ? open("/dev/null", O_RDONLY) : open("/dev/full", O_RDWR));
  }
}

// A dataset of a thousand shards keeps as many files open, which is the usual limit; the machine allows more.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));  // opening too many files reports an error of its own
}

// Whether standard output is a pipe or socket whose reader has ended, such as `head`.
bool reader_is_gone() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

// A full disk shows only when the buffer is flushed. A reader that has ended has seen what it wanted, so the exit code
// tells only whether the work succeeded.
int finish(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  if (reader_is_gone()) return code;
  return report_error(code == kOk ? kOutOfMemory : code, "cannot write to standard output");
}

int run(int argc, char** argv) {
  CLI::App program(kDescription, "arbalest");
  program.footer(kExitCodesHelp);
  program.set_version_flag("-v,--version", fmt::format("arbalest {} ({})", ARBALEST_VERSION, jobs::source_commit()));
  program.require_subcommand(1);
  const std::vector<Command> commands = {add_train(program, argv[0]), add_evaluate(program), add_predict(program),
                                         add_runs(program),           add_validate(program), add_inspect(program),
                                         add_tune(program),           add_bench(program),    add_data(program),
                                         add_devices(program),        add_env(program),      add_export(program),
                                         add_import(program),         add_help(program)};
  if (argc < 2) {
    std::fputs(program.help().c_str(), stderr);
    return kUsageError;
  }
  const std::string problem = check_values(program, std::span(argv + 1, argv + argc));
  if (!problem.empty()) return report_error(kUsageError, problem);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 also reports requests for help and the version by exceptions.
    if (error.get_exit_code() == 0) return finish(program.exit(error));
    return report_error(kUsageError, explain(program, error));
  }
  for (const Command& command : commands) {
    if (!command.options->parsed()) continue;
    if (command.options->get_name() != "train") require_one_process(command.options->get_name());
    return finish(command.run());
  }
  return kInternalError;
}

}  // namespace

}  // namespace arbalest::cli

int main(int argc, char** argv) {
  using namespace arbalest::cli;
  try {
    // A supervisor may ask for a checkpoint before the job is read: the request counts, instead of ending the program.
    if (argc > 1 && std::string_view(argv[1]) == "train") catch_save_requests();
    // A command that only prints ends as `cat` does when nobody reads any more, whatever its parent does with this
    // signal. Commands that train ignore it (catch_stop_signals).
    std::signal(SIGPIPE, SIG_DFL);
    std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a failed write
    open_closed_standard_streams();
    raise_file_limit();
    start_log();
    google::protobuf::SetLogHandler(nullptr);  // our messages name the file, too
    return run(argc, argv);
  } catch (const std::exception& error) {
    const arbalest::engine::Error known = arbalest::jobs::as_error(error);
    return report_error(exit_code(known.kind()), known.what());
  }
}
