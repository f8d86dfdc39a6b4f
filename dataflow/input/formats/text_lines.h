// The lines of a text file that lists names or paths.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace arbalest::dataflow {

// Removes UTF-8's byte order mark, with which some editors begin a file, from the file's first line.
void remove_byte_order_mark(std::string& line);

// The lines of `text` without their ends ("\n" or "\r\n"), and without a byte order mark.
std::vector<std::string> text_lines(const std::string& text);

// The lines of a file. Throws ErrorKind::kData if it cannot be read.
std::vector<std::string> read_text_lines(const std::filesystem::path& path);

}  // namespace arbalest::dataflow
