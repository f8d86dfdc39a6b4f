// The commands of the program. Each add_...() adds a command with its options; run() executes the chosen one.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "messages/text_encoding.h"

namespace arbalest::cli {

struct Command {
  CLI::App* options;
  std::function<int()> run;  // returns the exit code; called after the command line has been parsed
};

// These write to standard output and standard error. An error is reported when the command has ended (main.cc), so it
// costs nothing that the command still does. fmt::print would throw. Control characters from names of files become '?'.
inline void print_to(std::FILE* file, std::string_view text) {
  const std::string safe = jobs::safe_text(text, jobs::TextFor::kTerminal);
  std::fwrite(safe.data(), 1, safe.size(), file);
}
inline void print_result(std::string_view text) { print_to(stdout, text); }
inline void print_note(std::string_view text) { print_to(stderr, text); }
// Writes what programs read, such as JSON and job files, as it is.
inline void print_data(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// `name`: of the program, as the user called it.
Command add_train(CLI::App& program, const std::string& name);
Command add_evaluate(CLI::App& program);
Command add_export(CLI::App& program);
Command add_import(CLI::App& program);
Command add_predict(CLI::App& program);
Command add_runs(CLI::App& program);
Command add_validate(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_tune(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_data(CLI::App& program);
Command add_devices(CLI::App& program);
Command add_env(CLI::App& program);
// Must be added last: it shows the help of the others.
Command add_help(CLI::App& program);

}  // namespace arbalest::cli
