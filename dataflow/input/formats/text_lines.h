// The lines of a text file that lists names or paths.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace arbalest::dataflow {

// The lines of `text` without their ends ("\n" or "\r\n"), and without UTF-8's byte order mark, which some editors
// write at the start.
std::vector<std::string> text_lines(const std::string& text);

// The lines of a file. Throws ErrorKind::kData if it cannot be read.
std::vector<std::string> read_text_lines(const std::filesystem::path& path);

}  // namespace arbalest::dataflow
