#include "cli/usage_error.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "engine/base/nearest_name.h"

namespace arbalest::cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Whether the command has an option of this name that takes no value.
bool is_flag(const CLI::App& program, const std::string& name) {
  const CLI::Option* option = program.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() == 0;
}

// The program's command that `word` names, or `command` if it names none.
const CLI::App& command_after(const CLI::App& command, const std::string& word) {
  for (const CLI::App* each : commands_of(command)) {
    if (each->get_name() == word) return *each;
  }
  return command;
}

// The chosen command, or the chosen command of a group; the program if none was chosen.
const CLI::App& chosen_command(const CLI::App& program) {
  const std::vector<CLI::App*> chosen = program.get_subcommands();
  return chosen.empty() ? program : chosen_command(*chosen.front());
}

// The command with its group: "arbalest data verify".
std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string where_to_look(const CLI::App& command) {
  return fmt::format(" ('{} --help' shows what there is)", full_name(command));
}

// Whether `word` has the form "training.batch_size=16" and no file has that name.
bool is_setting(const std::string& word) {
  std::error_code unknown;
  return word.find('=') != std::string::npos && !std::filesystem::exists(word, unknown);
}

// Describes a superfluous argument. A setting may have been given in place of the job.
std::string unexpected(const CLI::App& command, const std::string& word) {
  if (command.get_option_no_throw("--set") == nullptr) return fmt::format("unexpected argument '{}'", word);
  const std::vector<std::string> jobs = command.get_option("JOB")->results();
  for (const std::string& candidate : {word, jobs.empty() ? "" : jobs.front()}) {
    if (is_setting(candidate)) {
      return fmt::format("'{}' is a setting where a job file was expected; put --set before each setting: --set {}",
                         candidate, candidate);
    }
  }
  return fmt::format("unexpected argument '{}'", word);
}

// Describes an option with no value, or with more values than it takes.
std::string wrong_count(const CLI::App& command, const CLI::ParseError& error) {
  const std::string text = error.what();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (!text.starts_with(name + ":")) continue;
    if (option->count() > 1) return name + " is given more than once";
    const std::string values = option->get_type_name();
    const bool has_choices = values.find('|') != std::string::npos;
    return name + " has no value" + (has_choices ? fmt::format("; it is one of {}", values) : "");
  }
  return text;
}

}  // namespace

std::string check_values(const CLI::App& program, std::span<char* const> arguments) {
  const CLI::App* command = &program;
  for (const std::string argument : arguments) {
    command = &command_after(*command, argument);
    const std::size_t equals = argument.find('=');
    if (!argument.starts_with("--") || equals == std::string::npos) continue;
    if (equals == argument.size() - 1) return fmt::format("'{}' has no value", argument);
    const std::string name = argument.substr(0, equals);
    if (is_flag(*command, name)) {
      return fmt::format("'{}': {} takes no value; to switch it off, leave it out", argument, name);
    }
  }
  return "";
}

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = chosen_command(program);
  const std::vector<std::string> unknown = program.remaining(true);
  if (unknown.empty()) {
    const bool is_count = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
    return (is_count ? wrong_count(command, error) : error.what()) + where_to_look(command);
  }
  const std::string& word = unknown.front();
  if (word.starts_with('-')) {
    if (word == "--") {
      return "'--' does not help a path that begins with '-': write it with its folder, as in ./-NAME" +
             where_to_look(command);
    }
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("unknown option '{}'{}{}", name, engine::did_you_mean(name, option_names(command)),
                       where_to_look(command));
  }
  if (!commands_of(command).empty()) return unknown_command(command, word);
  return unexpected(command, word) + where_to_look(command);
}

const CLI::App* find_command(const CLI::App& program, std::string_view name) {
  const auto commands = commands_of(program);
  const auto found = std::ranges::find(commands, name, &CLI::App::get_name);
  return found == commands.end() ? nullptr : *found;
}

namespace {

// Commands that users of other programs expect, and what there is instead.
std::string instead_of(std::string_view name) {
  if (name == "resume")
    return "'arbalest train JOB --output RUN --resume=auto' goes on with the run in the directory RUN";
  if (name == "infer" || name == "classify") return "'arbalest predict RUN INPUT' asks a saved model";
  if (name == "save") return "a run saves its model by itself; 'arbalest export RUN' writes it for other programs";
  if (name == "test" || name == "eval") return "'arbalest evaluate RUN' measures a saved model";
  if (name == "fit" || name == "run") return "'arbalest train JOB' trains a model";
  if (name == "list" || name == "ls") return "'arbalest runs' lists runs";
  return "";
}

}  // namespace

std::string unknown_command(const CLI::App& program, std::string_view name) {
  if (const std::string instead = instead_of(name); !instead.empty() && program.get_parent() == nullptr) {
    return fmt::format("there is no command '{}': {}", name, instead);
  }
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(program)) names.push_back(command->get_name());
  return fmt::format("unknown command '{}'{}{}", name, engine::did_you_mean(name, names), where_to_look(program));
}

}  // namespace arbalest::cli
