// arbalest help [COMMAND]
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/usage_error.h"
#include "engine/error.h"

namespace arbalest::cli {

namespace {

int help(const CLI::App& program, const std::string& command) {
  if (command.empty()) {
    // program.help() would print the help of the chosen command.
    fmt::print("{}", program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal));
    return kOk;
  }
  const CLI::App* found = find_command(program, command);
  if (found == nullptr) engine::fail(engine::ErrorKind::kUsage, "{}", unknown_command(program, command));
  fmt::print("{}", found->help(program.get_name()));
  return kOk;
}

}  // namespace

Command add_help(CLI::App& program) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("help", "Show this, or the help of a command");
  command->add_option("COMMAND", *name, "Name of a command");
  return {command, [&program, name] { return help(program, *name); }};
}

}  // namespace arbalest::cli
