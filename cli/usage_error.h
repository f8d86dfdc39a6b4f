// Describes what is wrong with a command line, in one line, with the likely fix.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace arbalest::cli {

// Checks the form of "--option=value" among `arguments` before `program` parses them: CLI11 would take the next word
// for a missing value, and would accept values for flags. Returns "" if nothing is wrong.
std::string check_values(const CLI::App& program, std::span<char* const> arguments);

// Explains `error`, which `program` has thrown while parsing the command line.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

// Returns null if there is no command of that name.
const CLI::App* find_command(const CLI::App& program, std::string_view name);

// "unknown command 'trian'; did you mean 'train'? ('arbalest --help' shows what there is)"
std::string unknown_command(const CLI::App& program, std::string_view name);

}  // namespace arbalest::cli
