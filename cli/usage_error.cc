#include "cli/usage_error.h"

#include <vector>

#include <fmt/format.h>

#include "engine/nearest_name.h"

namespace arbalest::cli {

namespace {

std::vector<std::string> command_names(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  const CLI::App& command = chosen.empty() ? program : *chosen.front();
  const std::string help =
      fmt::format("'{} --help' shows what there is",
                  chosen.empty() ? program.get_name() : program.get_name() + " " + command.get_name());
  const std::vector<std::string> unknown = program.remaining(true);
  if (unknown.empty()) return fmt::format("{} ({})", error.what(), help);

  const std::string& word = unknown.front();
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown option '{}'{} ({})", name, engine::did_you_mean(name, option_names(command)), help);
  }
  if (chosen.empty()) {
    return fmt::format("unknown command '{}'{} ({})", word, engine::did_you_mean(word, command_names(program)), help);
  }
  return fmt::format("unexpected argument '{}' ({})", word, help);
}

}  // namespace arbalest::cli
