// arbalest help [COMMAND|FIELD]
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/usage_error.h"
#include "engine/error.h"
#include "jobs/options/text/field_documentation.h"

namespace arbalest::cli {

namespace {

int help(const CLI::App& program, const std::string& command) {
  if (command.empty()) {
    // program.help() would print the help of the chosen command.
    fmt::print("{}", program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal));
    return kOk;
  }
  if (const CLI::App* found = find_command(program, command)) {
    fmt::print("{}", found->help(program.get_name()));
    return kOk;
  }
  const std::string field = jobs::field_documentation(command);
  if (field.empty()) {
    engine::fail(engine::ErrorKind::kUsage, "{}; jobs have no field '{}' either", unknown_command(program, command),
                 command);
  }
  fmt::print("{}", field);
  return kOk;
}

}  // namespace

Command add_help(CLI::App& program) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("help", "Show this, the help of a command, or what a field of a job means");
  command->footer(
      "Examples:\n"
      "  arbalest help train\n"
      "  arbalest help learning_rate.one_cycle    a field by its path\n"
      "  arbalest help momentum                   all fields of a name\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("COMMAND|FIELD", *name, "Name of a command, or path or name of a job's field");
  return {command, [&program, name] { return help(program, *name); }};
}

}  // namespace arbalest::cli
