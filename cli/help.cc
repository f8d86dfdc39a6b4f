// arbalest help [COMMAND|FIELD]
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/usage_error.h"
#include "engine/base/error.h"
#include "options/text/field_documentation.h"

namespace arbalest::cli {

namespace {

// Names the field that was meant. A path cannot be a command.
[[noreturn]] void fail_unknown(const CLI::App& program, const std::string& name) {
  const std::string nearest = jobs::nearest_field(name);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
  if (name.find('.') != std::string::npos) {
    engine::fail(engine::ErrorKind::kUsage, "jobs have no field '{}'{}", name, hint);
  }
  engine::fail(engine::ErrorKind::kUsage, "{}; jobs have no field '{}' either{}", unknown_command(program, name), name,
               hint);
}

// `words`: "data verify" as two words, or the path of a field.
int help(const CLI::App& program, const std::vector<std::string>& words) {
  if (words.empty()) {
    // program.help() would print the help of the chosen command.
    fmt::print("{}", program.get_formatter()->make_help(&program, program.get_name(), CLI::AppFormatMode::Normal));
    return kOk;
  }
  const CLI::App* found = &program;
  std::string before = program.get_name();
  for (const std::string& word : words) {
    const CLI::App* next = find_command(*found, word);
    if (next == nullptr && words.size() == 1) break;
    if (next == nullptr) engine::fail(engine::ErrorKind::kUsage, "{}", unknown_command(*found, word));
    if (found != &program) before += " " + found->get_name();
    found = next;
  }
  if (found != &program) {
    fmt::print("{}", found->help(before));
    return kOk;
  }
  const std::string field = jobs::field_documentation(words.front());
  if (field.empty()) fail_unknown(program, words.front());
  fmt::print("{}", field);
  return kOk;
}

}  // namespace

Command add_help(CLI::App& program) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      program.add_subcommand("help", "Show this, the help of a command, or what a field of a job means");
  command->footer(
      "Examples:\n"
      "  arbalest help train\n"
      "  arbalest help data verify\n"
      "  arbalest help learning_rate.one_cycle    a field by its path\n"
      "  arbalest help momentum                   all fields of a name\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("COMMAND|FIELD", *words, "Name of a command, or path or name of a job's field")->expected(0, 2);
  return {command, [&program, words] { return help(program, *words); }};
}

}  // namespace arbalest::cli
