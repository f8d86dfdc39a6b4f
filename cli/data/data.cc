// arbalest data convert, arbalest data verify; fetch.cc has arbalest data fetch
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/data/fetch.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "cli/stop_signals.h"
#include "messages/text.h"
#include "saved_model/image_shards.h"
#include "train/data/dataset_verification.h"

namespace arbalest::cli {

namespace {

struct ConvertArguments {
  std::string source;
  std::string output;
  std::string train = "train";
  std::string test = "test";
  std::string validation;
  std::int64_t images_per_shard = jobs::ImageShardsOptions{}.images_per_shard;
  bool no_verify = false;
};

struct VerifyArguments {
  JobArguments job;
  std::string data_root;
  bool all = false;
};

int convert(const ConvertArguments& arguments) {
  const std::atomic<int>& stop_signal = catch_stop_signals("arbalest: stopped at once; the shards are incomplete\n");
  jobs::ImageShardsOptions options;
  options.source.directory = arguments.source;
  options.source.train = arguments.train;
  options.source.test = arguments.test;
  options.source.validation = arguments.validation;
  options.output = arguments.output;
  options.images_per_shard = arguments.images_per_shard;
  options.verify = !arguments.no_verify;
  options.stop_signal = &stop_signal;
  const jobs::ImageShardsReport report = jobs::write_image_shards(options);
  log_warnings(report.warnings);
  if (report.is_stopped) {
    spdlog::warn("stopped; '{}' has not been made", arguments.output);
    return kSignalBase + stop_signal.load();
  }
  const std::string validation =
      report.validation_images > 0 ? fmt::format(", {} validation", jobs::grouped(report.validation_images)) : "";
  print_result(fmt::format("{}: {} training{} and {}, classes: {} ({})\n", arguments.output,
                           jobs::grouped(report.training_images), validation,
                           jobs::counted(report.test_images, "test image"), report.classes.size(),
                           fmt::join(report.classes, ", ")));
  return kOk;
}

int verify(const VerifyArguments& arguments) {
  constexpr std::size_t kMostLines = 20;
  const jobs::JobOptions job = load(arguments.job);
  warn_of_unused_data_root(job, arguments.data_root, arguments.job.path);
  log_warnings(job.warnings);
  const jobs::DatasetVerification result =
      jobs::verify_dataset(job, data_root(arguments.data_root), arguments.job.path);
  log_warnings(result.warnings);
  for (const std::string& problem : result.problems) spdlog::error("{}", problem);
  for (const jobs::SplitVerification& split : result.splits) {
    const std::size_t lines = arguments.all ? split.problems.size() : std::min(split.problems.size(), kMostLines);
    for (std::size_t i = 0; i < lines; ++i) spdlog::error("{}", split.problems[i]);
    if (lines < split.problems.size()) {
      spdlog::error("... and {} more of {}; --all names them all", split.problems.size() - lines, split.name);
    }
    print_result(fmt::format("{}\n", jobs::to_text(split)));
  }
  print_result(jobs::to_text(result.classes, arguments.all ? result.classes.size() : kMostLines));
  return result.is_sound() ? kOk : kDataMissing;
}

void add_convert(CLI::App& data, Command& chosen) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* command = data.add_subcommand("convert", "Write a folder of images as TFRecord shards");
  command->footer(
      "Example:\n"
      "  arbalest data convert photos photo-records --train train.txt --test test.txt\n"
      "\n"
      "Reads JPEG, PNG and WebP files in folders that are named after their classes, decodes each file to check\n"
      "it, and writes train-*, test-*, with --validation also validation-*, and classes.txt for jobs with\n"
      "data { tfrecord { directory: ... } }.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("SOURCE", arguments->source, "Folder of the images")->required()->check(check_name);
  command->add_option("OUTPUT", arguments->output, "New folder for the shards")->required()->check(check_name);
  command->add_option("--train", arguments->train, "Training images: a folder or a list in SOURCE (default: train)")
      ->type_name("NAME")
      ->check(check_name);
  command->add_option("--test", arguments->test, "Test images, likewise (default: test)")
      ->type_name("NAME")
      ->check(check_name);
  command->add_option("--validation", arguments->validation, "Validation images, likewise (default: none)")
      ->type_name("NAME")
      ->check(check_name);
  command->add_option("--images-per-shard", arguments->images_per_shard, "Images per file (default: 1000)")
      ->type_name("N")
      ->check(check_decimal)
      ->check(CLI::Range(1, 1'000'000));
  command->add_flag("--no-verify", arguments->no_verify,
                    "Check only the headers of the images; damaged images are then included");
  chosen = {command, [arguments] { return convert(*arguments); }};
}

void add_verify(CLI::App& data, Command& chosen) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = data.add_subcommand("verify", "Read and decode every example of a job's datasets");
  command->footer(
      "Example:\n"
      "  arbalest data verify configs/lenet-mnist.txtpb\n"
      "\n"
      "Prints number, folder and name of each class.\n"
      "Lists the examples that cannot be read (the first one in an array or in a file of MNIST or CIFAR).\n"
      "Exits with 4 if there are any. It also exits with 4 if a list of class names is wrong, or if you\n"
      "verify RUN/job.txtpb and its class names differ from those in RUN/model.safetensors.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_job_arguments(*command, arguments->job);
  add_data_root(*command, arguments->data_root);
  command->add_flag("--all", arguments->all,
                    "List all classes, and all unreadable examples, not only the first 20 of a split");
  chosen = {command, [arguments] { return verify(*arguments); }};
}

}  // namespace

Command add_data(CLI::App& program) {
  CLI::App* data = program.add_subcommand(
      "data", "Fetch a published dataset, convert a folder of images, or verify the data of a job");
  data->require_subcommand(1);
  auto commands = std::make_shared<std::array<Command, 3>>();
  (*commands)[0] = add_data_fetch(*data);
  add_convert(*data, (*commands)[1]);
  add_verify(*data, (*commands)[2]);
  return {data, [commands] {
            for (const Command& command : *commands) {
              if (command.options->parsed()) return command.run();
            }
            return static_cast<int>(kInternalError);
          }};
}

}  // namespace arbalest::cli
