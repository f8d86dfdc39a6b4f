// Help, command-line errors, and commands that do not train.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"
#include "tests/support/source_directory.h"

namespace arbalest::tests {

using Catch::Matchers::StartsWith;

namespace {

// A short valid job.
constexpr const char* kJob =
    "name: \"small\"\n"
    "model { zoo { lenet {} } }\n"
    "data { digits {} }\n"
    "training { batch_size: 32 max_epochs: 1 }\n"
    "optimizer { sgd { momentum: 0.9 } }\n"
    "learning_rate { base: 0.05 }\n"
    "synchronization { sma {} }\n"
    "learners { per_device { fixed: 1 } }\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("usage: help and version go to stdout and succeed") {
  const Program program;
  const Completed help = program.run({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  CHECK(help.out.starts_with("Examples:"));
  CHECK_THAT(help.out, ContainsSubstring("129, 130 or 143 stopped by SIGHUP, SIGINT or SIGTERM"));
  for (const char* command :
       {"train", "evaluate", "validate", "inspect", "runs", "tune", "bench", "data", "devices", "env", "help"}) {
    INFO(command);
    CHECK_THAT(help.out, ContainsSubstring(std::string("\n  ") + command + " "));
    const Completed of_command = program.run({command, "--help"});
    CHECK(of_command.exit_code == 0);
    CHECK_THAT(of_command.out, ContainsSubstring("Usage: arbalest " + std::string(command)));
    CHECK(program.run({"help", command}).out == of_command.out);
  }
  CHECK(program.run({"help"}).out == help.out);
  CHECK(program.run({"help", "nothing"}).exit_code == 2);
  const Completed version = program.run({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out.starts_with("arbalest "));
  CHECK(program.run({"-v"}).out == version.out);
  const auto env = nlohmann::json::parse(program.run({"env", "--json"}).out);
  CHECK_THAT(version.out, ContainsSubstring("(" + env["source_commit"].get<std::string>() + ")\n"));
}

TEST_CASE("usage: help describes fields of a job") {
  const Program program;
  const Completed field = program.run({"help", "learning_rate.base"});
  CHECK(field.exit_code == 0);
  CHECK_THAT(field.out, StartsWith("learning_rate.base: number\n"));
  const Completed unknown = program.run({"help", "learning_rate.bass"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err ==
        "arbalest: error: jobs have no field 'learning_rate.bass'; did you mean 'learning_rate.base'?\n");
  const Completed bare = program.run({"help", "momentm"});
  CHECK(bare.exit_code == 2);
  CHECK_THAT(bare.err, ContainsSubstring("jobs have no field 'momentm' either; did you mean 'momentum'?"));
}

TEST_CASE("usage: help finds the commands of a group") {
  const Program program;
  for (const char* command : {"convert", "verify"}) {
    const Completed help = program.run({"help", "data", command});
    CHECK(help.exit_code == 0);
    CHECK_THAT(help.out, ContainsSubstring(std::string("Usage: arbalest data ") + command));
    CHECK(help.out == program.run({"data", command, "--help"}).out);
  }
  const Completed unknown = program.run({"help", "data", "verfy"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("unknown command 'verfy'; did you mean 'verify'?"));
  CHECK(program.run({"help", "train", "it"}).exit_code == 2);
}

TEST_CASE("usage: a command that users of other programs expect is answered with what there is instead") {
  const Program program;
  for (const auto& [command, instead] : std::vector<std::pair<std::string, std::string>>{
           {"resume", "--resume=auto"}, {"infer", "predict RUN"}, {"save", "export RUN"}}) {
    const Completed result = program.run({command});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("there is no command '" + command + "': ") && ContainsSubstring(instead));
  }
}

TEST_CASE("usage: the help of train and evaluate lists the exit codes") {
  const Program program;
  for (const char* command : {"train", "evaluate", "bench"}) {
    const std::string help = program.run({command, "--help"}).out;
    CHECK_THAT(help, ContainsSubstring("Exit codes: 0 done") && ContainsSubstring("5 saved model damaged"));
    CHECK(help.find("Excludes") == std::string::npos);
  }
  const std::string help = program.run({"train", "--help"}).out;
  CHECK_THAT(help, ContainsSubstring("--set PATH=VALUE  ") && ContainsSubstring("Ctrl-C"));
}

TEST_CASE("usage: without a command the program prints the help and fails") {
  const Completed result = Program().run({});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("Examples:"));
}

TEST_CASE("usage: a command-line error exits 2 and names the fix") {
  struct Case {
    std::vector<std::string> arguments;
    const char* message;
  };
  const Program program;
  for (const Case& test : std::vector<Case>{
           {{"trian", "x.txtpb"}, "unknown command 'trian'; did you mean 'train'?"},
           {{"save"}, "there is no command 'save'"},
           {{"help", "trian"}, "unknown command 'trian'; did you mean 'train'?"},
           {{"train", "x.txtpb", "--outptu", "y"}, "unknown option '--outptu'; did you mean '--output'?"},
           {{"train", "x.txtpb", "--outptu=y"}, "unknown option '--outptu'; did you mean '--output'?"},
           {{"train", "x.txtpb", "--restart", "auto"}, "unknown option '--restart'"},
           {{"predict", "run", "--", "-a.png", "-b.png"}, "write it with its folder, as in ./-NAME"},
           {{"--jsno", "env"}, "unknown option '--jsno'"},
           {{"train"}, "JOB is required"},
           {{"train", "a.txtpb", "b.txtpb"}, "unexpected argument 'b.txtpb'"},
           {{"train", "a.txtpb", "--set"}, "--set has no value"},
           {{"validate", "--set", "a=1", "b=2", "x.txtpb"},
            "'b=2' is a setting where a job file was expected; put --set before each setting: --set b=2"},
           {{"train", "x.txtpb", "a=1"}, "put --set before each setting: --set a=1"},
           {{"evaluate", "a", "b=1"}, "unexpected argument 'b=1'"},
           {{"train", "a.txtpb", "--dry-run", "--output", "x"}, "--output and --dry-run cannot be combined"},
           {{"train", "a.txtpb", "--dry-run", "--kernels", "k.txtpb"}, "--kernels and --dry-run cannot be combined"},
           {{"train", "a.txtpb", "--dry-run=3"}, "--dry-run takes no value"},
           {{"train", "a.txtpb", "--dry-run=false"}, "--dry-run takes no value"},
           {{"env", "--json=true"}, "--json takes no value"},
           {{"train", "--help=1"}, "--help takes no value"},
           {{"train", "a.txtpb", "--output", "x", "--output", "y"}, "--output is given more than once"},
           {{"train", "a.txtpb", "--output", ""}, "--output: the name is empty"},
           {{"train", "a.txtpb", "--output="}, "'--output=' has no value"},
           {{"train", "a.txtpb", "--output=", "--dry-run"}, "'--output=' has no value"},
           {{"train", "a.txtpb", "--output", "--dry-run"}, "--output: '--dry-run' is no name"},
           {{"train", "a.txtpb", "--data-root", ""}, "--data-root: the name is empty"},
           {{"evaluate", "run", "--data-root", ""}, "--data-root: the name is empty"},
           {{"evaluate", ""}, "RUN: the name is empty"},
           {{"validate", ""}, "JOB: the name is empty"},
           {{"evaluate", "no-such-run"}, "'no-such-run' is not the directory of a run: it does not exist"},
           {{"evaluate", "."}, "'.' is not the directory of a run: it has no job.txtpb"},
           {{"inspect", "x.txtpb", "--links", "12GB/s,5us"}, "--links requires --devices-assumed"},
           {{"inspect", "x.txtpb", "--devices-assumed", "4"}, "--devices-assumed requires --links"},
           {{"inspect", "x.txtpb", "--flops", "1TFLOP/s"}, "--flops requires --links"},
           {{"inspect", "x.txtpb", "--links", "12", "--devices-assumed", "4"},
            "--links: '12' is not a speed and a latency; write both, like 12GB/s,5us"},
           {{"inspect", "x.txtpb", "--links", "", "--devices-assumed", "4"}, "write both, like 12GB/s,5us"},
           {{"inspect", "x.txtpb", "--links", "-1GB/s,5us", "--devices-assumed", "4"},
            "--links: the speed must be positive and finite (got -1GB/s)"},
           {{"inspect", "x.txtpb", "--links", "12Gb/s,5us", "--devices-assumed", "4"}, "the unknown unit 'Gb/s'"},
           {{"inspect", "x.txtpb", "--links", "12GB/s,5us", "--devices-assumed", "0"},
            "--devices-assumed: Value 0 not in range 2 to 100000"},
           {{"inspect", "x.txtpb", "--links", "12GB/s,5us", "--devices-assumed", "4", "--flops", "10"},
            "--flops: the compute speed '10' has no unit; write it like 10TFLOP/s"},
           {{"inspect", "x.txtpb", "--links", "12GB/s,5us", "--devices-assumed", "4", "--expand"}, "--links"},
           {{"evaluate", std::string(300, 'x')}, "is not the directory of a run: File name too long"},
       }) {
    INFO(test.arguments.front());
    const Completed result = program.run(test.arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK(result.err.starts_with("arbalest: error: "));
    CHECK_THAT(result.err, ContainsSubstring(test.message));
  }
}

TEST_CASE("usage: devices and env print the same as JSON") {
  const Program program;
  const Completed devices = program.run({"devices", "--json"});
  REQUIRE(devices.exit_code == 0);
  const auto list = nlohmann::json::parse(devices.out);
  REQUIRE_FALSE(list.empty());
  const auto cpu = std::ranges::find_if(list, [](const auto& device) { return device["name"] == "cpu"; });
  REQUIRE(cpu != list.end());
  CHECK_FALSE((*cpu)["cores"].empty());
  CHECK_THAT(program.run({"devices"}).out, ContainsSubstring("name: cpu"));

  const Completed env = program.run({"env", "--json"});
  REQUIRE(env.exit_code == 0);
  const auto report = nlohmann::json::parse(env.out);
  for (const char* library : {"oneDNN", "oneTBB", "protobuf", "spdlog"}) CHECK(report["libraries"].contains(library));
  for (const char* field : {"arbalest", "compiler", "processor", "instruction_sets", "usable_cores", "cuda"}) {
    CHECK(report.contains(field));
  }
  const auto& sets = report["instruction_sets"];
  const bool has_bfloat16 = std::ranges::find(sets, "avx512_bf16") != sets.end();
  CHECK((*cpu)["precisions"] ==
        (has_bfloat16 ? nlohmann::json::array({"FP32", "BF16"}) : nlohmann::json::array({"FP32"})));
  for (const char* limit : {"cores", "memory_unused_bytes"}) {
    CHECK((report["cgroup"][limit].is_null() || report["cgroup"][limit].is_number()));
  }
  const std::string text = program.run({"env"}).out;
  CHECK_THAT(text, ContainsSubstring("  oneDNN: "));
  CHECK(text.find("null") == std::string::npos);
}

TEST_CASE("usage: devices says why there is no GPU, with the same message as env") {
  const Program program;
  const Completed devices = program.run({"devices"});
  const bool has_gpu = devices.out.find("name: cuda:") != std::string::npos;
  const auto report = nlohmann::json::parse(program.run({"env", "--json"}).out);
  CHECK(devices.err == (has_gpu ? "" : "cuda: " + report["cuda"].get<std::string>() + "\n"));
  CHECK(program.run({"devices", "--json"}).err == devices.err);
}

TEST_CASE("usage: a result that cannot be written is a failure") {
  const Program program;
  const Completed result = Subprocess({"/bin/sh", "-c", std::string(ARBALEST_PROGRAM) + " env > /dev/full"},
                                      program.environment(), program.directory())
                               .wait();
  CHECK(result.exit_code == 6);
  CHECK_THAT(result.err, ContainsSubstring("cannot write to standard output"));
}

TEST_CASE("usage: a reader of the results that ends early ends a command that prints, and no training") {
  const Program program;
  // Descriptor 4 is a pipe whose reader has ended.
  const auto unread = [&](const std::string& arguments) {
    const std::string script =
        "exec 4> >(:); wait $!; " ARBALEST_PROGRAM " " + arguments + " >&4; echo \"exit code $?\"";
    return Subprocess({"/bin/bash", "-c", script}, program.environment(), program.directory()).wait();
  };
  for (const char* arguments : {"env", "help", "devices --json"}) {
    const Completed printed = unread(arguments);
    CHECK(printed.out == "exit code 141\n");  // 128 + SIGPIPE
    CHECK_THAT(printed.err, !ContainsSubstring("error"));
  }
  const Completed trained =
      unread("train " + Program::config("logistic-digits") + " --quiet --set training.max_epochs=1 --output run");
  CHECK(trained.out == "exit code 0\n");
  CHECK(trained.err.empty());
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
  CHECK(unread("train " + Program::config("logistic-digits") + " --set training.max_epochs=1 --output run").out ==
        "exit code 2\n");
}

TEST_CASE("validate: a valid job is accepted, and no files are left") {
  const Program program;
  write_text(program / "job.txtpb", kJob);
  const Completed result = program.run({"validate", "job.txtpb"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out == "job.txtpb: valid\n");
  CHECK(std::distance(std::filesystem::directory_iterator(program.directory()), {}) == 1);
}

TEST_CASE("validate: every job in configs is valid") {
  const Program program;
  for (const auto& entry : std::filesystem::directory_iterator(tests::source_directory() + "/configs")) {
    const Completed result = program.run({"validate", entry.path()});
    INFO(entry.path() << ": " << result.err);
    CHECK(result.exit_code == 0);
  }
}

TEST_CASE("validate: an invalid job exits 3 with the position and a remedy") {
  const Program program;
  write_text(program / "job.txtpb", replaced(kJob, "batch_size", "batchsize"));
  Completed result = program.run({"validate", "job.txtpb"});
  CHECK(result.exit_code == 3);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("job.txtpb:4:12: error: "));
  CHECK_THAT(result.err, ContainsSubstring("did you mean 'batch_size'"));

  write_text(program / "job.txtpb", replaced(kJob, "base: 0.05", "base: nan"));
  result = program.run({"validate", "job.txtpb"});
  CHECK(result.exit_code == 3);
  CHECK(result.err.starts_with("job.txtpb:6:"));

  result = program.run({"train", "no-such-job.txtpb"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.err, ContainsSubstring("no-such-job.txtpb"));
  CHECK_FALSE(std::filesystem::exists(program / "runs"));
}

TEST_CASE("validate: --set changes the job, and errors in it exit 2") {
  const Program program;
  write_text(program / "job.txtpb", kJob);
  CHECK(program.run({"validate", "job.txtpb", "--set", "training.batch_size=16"}).exit_code == 0);
  CHECK(program.run({"validate", "--set", "training.batch_size=16", "job.txtpb"}).exit_code == 0);
  const Completed unknown = program.run({"validate", "job.txtpb", "--set", "training.batchsize=16"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.starts_with("--set training.batchsize=16: error: no field 'batchsize'"));
  const Completed zero = program.run({"validate", "job.txtpb", "--set", "training.batch_size=0"});
  CHECK(zero.exit_code == 2);
}

TEST_CASE("inspect: shows the layers, and the parameters of Caffe's LeNet") {
  const Program program;
  write_text(program / "job.txtpb", kJob);
  const Completed text = program.run({"inspect", "job.txtpb"});
  INFO(text.err);
  REQUIRE(text.exit_code == 0);
  CHECK_THAT(text.out, ContainsSubstring("conv1") && ContainsSubstring("431,080"));
  const auto report = nlohmann::json::parse(program.run({"inspect", "job.txtpb", "--json"}).out);
  CHECK(report["parameters"] == 431080);
  CHECK(report["arena_bytes"] < report["arena_bytes_without_reuse"]);
  CHECK(report["learners_that_fit"] >= 1);
}

TEST_CASE("inspect: --links prints what layers send between the assumed devices, instead of everything else") {
  const Program program;
  write_text(program / "job.txtpb", kJob);
  const std::vector<std::string> command = {"inspect", "job.txtpb", "--links", "12GB/s,5us", "--devices-assumed", "4"};
  const Completed text = program.run(command);
  INFO(text.err);
  REQUIRE(text.exit_code == 0);
  CHECK_THAT(text.out, ContainsSubstring("dense1") && ContainsSubstring("2,403,000") && ContainsSubstring("split by"));
  CHECK_THAT(text.out, !ContainsSubstring("learning rate"));
  std::vector<std::string> with_flops = command;
  with_flops.insert(with_flops.end(), {"--flops", "10TFLOP/s", "--json", "--set", "training.batch_size=64"});
  const Completed json = program.run(with_flops);
  INFO(json.err);
  REQUIRE(json.exit_code == 0);
  const auto report = nlohmann::json::parse(json.out);
  CHECK(report["devices"] == 4);
  CHECK(report["batch_size"] == 64);
  CHECK(report["flops_per_second"] == 1e13);
  REQUIRE(report["layers"].size() == 4);
  CHECK(report["layers"][2]["split"]["by"] == "rows");
  CHECK_THAT(program.run({"inspect", "--help"}).out, ContainsSubstring("--devices-assumed P"));
}

}  // namespace arbalest::tests
