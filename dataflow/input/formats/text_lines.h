// The lines of a text file that lists names or paths.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::dataflow {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8; some editors begin a file with it

// The lines of `text` without their ends ("\n" or "\r\n"), and without a byte order mark.
std::vector<std::string> text_lines(const std::string& text);

// The lines of a file. Throws ErrorKind::kData if it cannot be read.
std::vector<std::string> read_text_lines(const std::filesystem::path& path);

}  // namespace arbalest::dataflow
