// What is wrong with a command line, in one line, with the likely fix.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace arbalest::cli {

// `program` has just thrown `error` while it read the command line.
std::string explain(const CLI::App& program, const CLI::ParseError& error);

}  // namespace arbalest::cli
