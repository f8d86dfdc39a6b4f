// The commands of the program: each adds itself with its options, and is run if it was chosen.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace arbalest::cli {

struct Command {
  CLI::App* options;
  std::function<int()> run;  // returns the exit code; called after the command line has been read
};

Command add_train(CLI::App& program);
Command add_evaluate(CLI::App& program);
Command add_validate(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_tune(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_data(CLI::App& program);
Command add_devices(CLI::App& program);
Command add_env(CLI::App& program);
// The last: it shows the help of the others.
Command add_help(CLI::App& program);

}  // namespace arbalest::cli
