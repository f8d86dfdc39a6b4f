#include "dataflow/input/formats/text_lines.h"

#include <fstream>
#include <sstream>
#include <string_view>

#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

std::vector<std::string> lines_in(std::istream& text) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    if (lines.empty()) remove_byte_order_mark(line);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

void remove_byte_order_mark(std::string& line) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (line.starts_with(kMark)) line.erase(0, kMark.size());
}

std::vector<std::string> text_lines(const std::string& text) {
  std::istringstream stream(text);
  return lines_in(stream);
}

std::vector<std::string> read_text_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) {
    engine::fail(engine::ErrorKind::kData, "{}: cannot be opened; check its permissions", path.string());
  }
  std::vector<std::string> lines = lines_in(file);
  if (file.bad()) engine::fail(engine::ErrorKind::kData, "{}: reading failed", path.string());
  return lines;
}

}  // namespace arbalest::dataflow
