#include "tests/architecture/class_sizes.h"

#include <algorithm>
#include <optional>
#include <regex>

namespace arbalest::tests {

namespace {

// Returns the name of the class whose body begins after `head`, the code since the previous statement or block.
std::optional<std::string> class_name(const std::string& head) {
  static const std::regex kClass(R"(\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^:][\s\S]*)?$)");
  std::smatch match;
  if (head.find("enum") != std::string::npos || !std::regex_search(head, match, kClass)) return std::nullopt;
  return match[1];
}

// Returns the statement without the arguments of its templates, where parentheses may be parts of types.
std::string without_templates(const std::string& statement) {
  std::string bare;
  int depth = 0;
  for (const char c : statement) {
    if (c == '<') ++depth;
    if (depth == 0) bare += c;
    if (c == '>' && depth > 0) --depth;
  }
  return bare;
}

// Whether a statement of a class, or what comes before a block, declares a member function.
bool declares_function(const std::string& statement) {
  static const std::regex kOther(R"(^\s*(?:using|friend|static_assert|typedef)\b)");
  static const std::regex kDeleted(R"(=\s*delete\s*$)");
  const std::string bare = without_templates(statement);
  const std::size_t parenthesis = bare.find('(');
  if (parenthesis == std::string::npos || std::regex_search(bare, kOther) || std::regex_search(bare, kDeleted)) {
    return false;
  }
  return bare.find("operator") != std::string::npos || bare.find('=') > parenthesis;
}

}  // namespace

std::vector<ClassSize> class_sizes(std::string_view code) {
  static const std::regex kAccess(R"(\b(?:public|protected|private)\s*:(?!:))");
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<ClassSize> found;
  std::vector<std::size_t> open;  // by open brace: the class that it begins, or kNone
  std::string head;
  int line = 1;
  const auto end_statement = [&] {
    const std::string statement = std::regex_replace(head, kAccess, "");
    if (!open.empty() && open.back() != kNone && declares_function(statement)) ++found[open.back()].functions;
    head.clear();
  };
  for (const char c : code) {
    if (c == '\n') ++line;
    if (c == '{') {
      const std::optional<std::string> name = class_name(head);
      if (name) {
        head.clear();
      } else {
        end_statement();
      }
      open.push_back(name ? found.size() : kNone);
      if (name) found.push_back({*name, line});
    } else if (c == '}') {
      if (!open.empty()) open.pop_back();
      head.clear();
    } else if (c == ';') {
      end_statement();
    } else {
      head += c;
    }
  }
  return found;
}

}  // namespace arbalest::tests
