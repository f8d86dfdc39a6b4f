#include "tests/architecture/function_lengths.h"

#include <regex>
#include <string>

namespace arbalest::tests {

namespace {

// Whether an opening brace begins a function. `head`: the code between the previous statement or block and the brace.
bool is_function(const std::string& head) {
  static const std::regex kOther(
      R"(^\s*(?:if|for|while|switch|else|do|try|catch|return|namespace|class|struct|union|enum|extern)\b)");
  static const std::regex kLambda(R"(\[[^\[\]]*\]\s*(?:\([^()]*\)\s*)?(?:mutable\s*)?(?:->\s*[\w:<>]+\s*)?$)");
  static const std::regex kFunction(
      R"(\)\s*(?:const\b\s*|noexcept\b\s*|override\b\s*|final\b\s*)*(?:->\s*[\w:<>,\s*&]+)?(?::[^;]*)?$)");
  return !std::regex_search(head, kOther) && !std::regex_search(head, kLambda) && std::regex_search(head, kFunction);
}

}  // namespace

std::vector<FunctionLength> function_lengths(std::string_view code) {
  struct Block {
    bool function = false;
    int line = 0;
  };
  std::vector<FunctionLength> found;
  std::vector<Block> open;
  std::string head;
  int line = 1;
  for (const char c : code) {
    if (c == '\n') ++line;
    if (c == '{') {
      open.push_back({is_function(head), line});
      head.clear();
    } else if (c == '}') {
      if (!open.empty() && open.back().function) found.push_back({open.back().line, line - open.back().line + 1});
      if (!open.empty()) open.pop_back();
      head.clear();
    } else if (c == ';') {
      head.clear();
    } else {
      head += c;
    }
  }
  return found;
}

}  // namespace arbalest::tests
