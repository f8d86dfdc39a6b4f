#include "options/text/parser_messages.h"

#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "messages/text.h"
#include "options/text/schema_names.h"

namespace arbalest::jobs {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;

namespace {

// A message of protobuf and our clearer text for it. Each * of the pattern becomes {0}, {1} in the replacement.
struct Replacement {
  std::string_view pattern;
  std::string_view replacement;
};
constexpr std::string_view kTooDeep = "Message is too deep, the parser exceeded the configured recursion limit of *.";
constexpr std::array kReplacements{
    Replacement{"Non-repeated field \"*\" is specified multiple times.", "'{0}' is given more than once"},
    Replacement{"Field \"*\" is specified along with field \"*\", another member of oneof \"*\".",
                "'{0}' and '{1}' exclude each other; remove one of them"},
    Replacement{kTooDeep, "messages are nested more than {0} deep"},
    Replacement{"Ignoring extension \"*\" which is not defined or is not an extension of \"*\".",
                "jobs have no extensions, such as [{0}]"},
    Replacement{"Interpreting non ascii codepoint *.",
                "outside of quotes only ASCII characters are allowed; are these typographic quotes, or an accent?"},
    Replacement{"Expected \"*\", found \"*\".", "expected '{0}', found '{1}'"},
    Replacement{"Expected integer, got: -", "expected an integer that is not negative"},
    Replacement{"Expected integer, got: *", "expected an integer, not {0}"},
    Replacement{"Integer out of range (*)", "{0} is too large"},
    Replacement{"Numbers starting with leading zero must be in octal.",
                "a number with a leading zero is octal, which has no digits 8 and 9; remove the zero"},
    Replacement{"Hex and octal numbers must be integers.", "a fraction has no leading zeros, as in 0.5"},
    Replacement{"Expect a decimal number, got: *", "expected a decimal number without a leading zero, not {0}"},
    Replacement{"Expected double, got: *", "expected a number, not {0}"},
    Replacement{"Expected string, got: *", "expected text in quotes, not {0}"},
    Replacement{"Invalid value for boolean field \"*\". Value: \"*\".", "{0} must be true or false, not {1}"},
};

// Returns the parts of `text` that stand for each * of `pattern`; nothing if they differ elsewhere.
std::optional<std::vector<std::string>> match(std::string_view pattern, std::string_view text) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t star = pattern.find('*');
    if (!text.starts_with(pattern.substr(0, star))) return std::nullopt;
    if (star == std::string_view::npos) {
      if (text.size() != pattern.size()) return std::nullopt;
      return words;
    }
    text.remove_prefix(star);
    pattern.remove_prefix(star + 1);
    const std::string_view literal = pattern.substr(0, pattern.find('*'));
    const std::size_t end = literal.empty() ? text.size() : text.find(literal);
    if (end == std::string_view::npos) return std::nullopt;
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

// "[-2147483648, 2147483647]"; "" if the field is not an integer.
std::string integer_range(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return fmt::format("[{}, {}]", std::numeric_limits<std::int32_t>::min(),
                         std::numeric_limits<std::int32_t>::max());
    case FieldDescriptor::CPPTYPE_UINT64: return fmt::format("[0, {}]", std::numeric_limits<std::uint64_t>::max());
    default: return "";
  }
}

// Explains a wrong value of a type of which the schema knows more than the parser; "" for other types.
std::string wrong_value(const std::string& raw, const FieldDescriptor& field) {
  const auto range = match("Integer out of range (*)", raw);
  if (range && !integer_range(field).empty()) {
    return fmt::format("{} must be an integer in {}, not {}", field.name(), integer_range(field), (*range)[0]);
  }
  const auto word = match("Expected identifier, got: *", raw);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL && (range || word)) {
    return fmt::format("{} must be true or false, not {}", field.name(), range ? (*range)[0] : (*word)[0]);
  }
  const auto value = match("Expected integer or identifier, got: *", raw);
  if (value && field.enum_type() != nullptr) return no_such_value(field, (*value)[0]);
  const auto words = match("Expected \"{\", found \"*\".", raw);
  if (words && field.message_type() != nullptr) return no_message(field, (*words)[0]);
  return "";
}

// Explains `word` in place of a field's name: the parser takes numbers for names, too. Many users write a comma or a
// percent sign in numbers.
std::string wrong_name(std::string_view word, const SourceText& source, Position position) {
  if (word.empty()) return "the text ends within a message; is a '}' missing?";
  std::string_view before = std::string_view(source.text()).substr(0, source.offset(position));
  before = before.substr(0, before.find_last_not_of(" \t\r\n") + 1);
  const std::size_t start = before.find_last_not_of("0123456789.,+-eE") + 1;  // 0 if all of it is a number
  const std::string_view number = before.substr(start);
  const bool is_number = !number.empty() && is_digit(number.front());
  if (is_number && word == "%") {
    return fmt::format("'{}%': write percentages as fractions, such as 0.99 for 99 %", number);
  }
  if (is_number && number.back() == ',' && is_digit(word.front())) {
    const std::string_view whole = number.substr(0, number.size() - 1);
    return fmt::format("'{}{}': a fraction is written {}.{}, and a list [{}, {}]", number, word, whole, word, whole,
                       word);
  }
  return fmt::format("expected the name of a field, not {}", word);
}

}  // namespace

Position start_of_mistake(const SourceText& source, Position position, const std::string& raw) {
  const std::string_view text = raw;
  for (std::size_t open = text.find('"'); open != std::string_view::npos; open = text.find('"', open + 1)) {
    const std::size_t close = text.find('"', open + 1);
    if (close == std::string_view::npos) break;
    const std::string word(text.substr(open + 1, close - open - 1));
    for (const std::string& written : {word, "[" + word + "]"}) {  // a field, or an extension
      const Position start = source.start_of(written, position);
      if (start != position) return start;
    }
    open = close;
  }
  return position;
}

std::string reworded(const std::string& raw, const SourceText& source, Position position, const FieldPlace* place) {
  if (const auto words = match("Message type \"*\" has no field named \"*\".", raw)) {
    const auto* type = DescriptorPool::generated_pool()->FindMessageTypeByName((*words)[0]);
    if (is_number_for_name(raw)) return wrong_name((*words)[1], source, position);
    if (type != nullptr) return no_such_field(*type, (*words)[1]);
  }
  if (const auto words = match("Unknown enumeration value of \"*\" for field \"*\".", raw)) {
    const auto* field = find_enum_field((*words)[1]);
    if (field != nullptr) return no_such_value(*field, (*words)[0]);
  }
  std::string text = place == nullptr || place->field == nullptr ? "" : wrong_value(raw, *place->field);
  if (!text.empty()) return text;
  if (const auto word = match("Expected identifier, got: *", raw)) return wrong_name((*word)[0], source, position);
  for (const Replacement& replacement : kReplacements) {
    if (auto words = match(replacement.pattern, raw)) {
      words->resize(2);
      return fmt::format(fmt::runtime(replacement.replacement), (*words)[0], (*words)[1]);
    }
  }
  text = raw;
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

bool is_number_for_name(const std::string& raw) {
  const auto words = match("Message type \"*\" has no field named \"*\".", raw);
  return words && !(*words)[1].empty() && is_digit((*words)[1][0]);
}

bool is_about_depth(const std::string& raw) { return match(kTooDeep, raw).has_value(); }

}  // namespace arbalest::jobs
