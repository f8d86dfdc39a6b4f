// What is wrong with a command line, in one line, with the likely fix.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace arbalest::cli {

// What is wrong with the form of "--option=value" among `arguments`, before `program` reads them: CLI11 would take the
// next word for a value that is missing, and gives flags values. "" if nothing is.
std::string check_values(const CLI::App& program, std::span<char* const> arguments);

// `program` has just thrown `error` while it read the command line.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

// Null if there is none of that name.
const CLI::App* find_command(const CLI::App& program, std::string_view name);

// "unknown command 'trian'; did you mean 'train'? ('arbalest --help' shows what there is)"
std::string unknown_command(const CLI::App& program, std::string_view name);

}  // namespace arbalest::cli
