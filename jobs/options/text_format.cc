#include "jobs/options/text_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>

#include "engine/error.h"
#include "jobs/options/schema_names.h"

namespace arbalest::jobs {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

namespace {

constexpr int kNesting = 64;

// protobuf's words, where ours are clearer. Each * of the pattern is {0}, {1} of the replacement.
struct Rewording {
  std::string_view pattern;
  std::string_view replacement;
};
constexpr std::array kRewordings{
    Rewording{"Non-repeated field \"*\" is specified multiple times.", "'{0}' is given more than once"},
    Rewording{"Field \"*\" is specified along with field \"*\", another member of oneof \"*\".",
              "'{0}' cannot stand beside '{1}'; remove one of them"},
    Rewording{"Message is too deep, the parser exceeded the configured recursion limit of *.",
              "messages are nested more than {0} deep"},
    Rewording{"Expected identifier, got: ", "the text ends within a message; is a '}}' missing?"},
    Rewording{"Expected identifier, got: *", "expected the name of a field, not {0}"},
    Rewording{"Expected \"*\", found \"*\".", "expected '{0}', found '{1}'"},
    Rewording{"Expected integer, got: -", "expected an integer that is not negative"},
    Rewording{"Expected integer, got: *", "expected an integer, not {0}"},
    Rewording{"Integer out of range (*)", "{0} is too large"},
    Rewording{"Expected double, got: *", "expected a number, not {0}"},
    Rewording{"Expected string, got: *", "expected text in quotes, not {0}"},
    Rewording{"Invalid value for boolean field \"*\". Value: \"*\".", "{0} must be true or false, not {1}"},
};

// What stands in `text` for each * of `pattern`; nothing if they differ elsewhere.
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

std::string reword(const std::string& raw) {
  if (const auto words = match("Message type \"*\" has no field named \"*\".", raw)) {
    const auto* type = DescriptorPool::generated_pool()->FindMessageTypeByName((*words)[0]);
    if (type != nullptr) return no_such_field(*type, (*words)[1]);
  }
  if (const auto words = match("Unknown enumeration value of \"*\" for field \"*\".", raw)) {
    const auto* field = find_enum_field((*words)[1]);
    if (field != nullptr) return no_such_value(*field, (*words)[0]);
  }
  for (const Rewording& rewording : kRewordings) {
    if (auto words = match(rewording.pattern, raw)) {
      words->resize(2);
      return fmt::format(fmt::runtime(rewording.replacement), (*words)[0], (*words)[1]);
    }
  }
  std::string text = raw;
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// protobuf names a word in quotes and points behind it.
Position start_of_named_word(const SourceText& source, Position position, std::string_view raw) {
  for (std::size_t open = raw.find('"'); open != std::string_view::npos; open = raw.find('"', open + 1)) {
    const std::size_t close = raw.find('"', open + 1);
    if (close == std::string_view::npos) break;
    const Position start = source.start_of(raw.substr(open + 1, close - open - 1), position);
    if (start != position) return start;
    open = close;
  }
  return position;
}

class IssueCollector final : public google::protobuf::io::ErrorCollector {
 public:
  explicit IssueCollector(const SourceText& source) : source_(source) {}

  void AddError(int line, int column, const std::string& message) override { add(line, column, message, true); }
  // Unknown fields: read over, so that all of them are found.
  void AddWarning(int line, int column, const std::string& message) override { add(line, column, message, false); }

  std::vector<SyntaxIssue> take() { return std::move(issues_); }

 private:
  void add(int line, int column, const std::string& message, bool is_last) {
    // One mistake can be reported twice, by the tokenizer and by the parser that misses the token.
    if (!issues_.empty() && issues_.back().is_last) return;
    if (issues_.size() >= kMaxShownIssues && !is_last) return;
    const Position position = source_.from_protobuf(std::max(line, 0), std::max(column, 0));
    issues_.push_back({start_of_named_word(source_, position, message), reword(message), is_last});
  }

  const SourceText& source_;
  std::vector<SyntaxIssue> issues_;
};

// Adds the lists that are written without an element. To protobuf they are lists that were left out, so they would mean
// a default that nobody asked for.
void find_empty_lists(const Message& message, const TextFormat::ParseInfoTree& tree, const SourceText& source,
                      std::vector<SyntaxIssue>& issues) {
  const google::protobuf::Reflection& at = *message.GetReflection();
  for (int f = 0; f < message.GetDescriptor()->field_count(); ++f) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(f);
    const bool is_message = field.message_type() != nullptr;
    if (!field.is_repeated()) {
      const auto* nested = is_message && at.HasField(message, &field) ? tree.GetTreeForNested(&field, -1) : nullptr;
      if (nested != nullptr) find_empty_lists(at.GetMessage(message, &field), *nested, source, issues);
      continue;
    }
    const int size = at.FieldSize(message, &field);
    if (const auto place = tree.GetLocation(&field, 0); size == 0 && place.line >= 0) {
      issues.push_back(
          {source.from_protobuf(place.line, place.column),
           fmt::format("{} is an empty list; leave it out to get its default, or name its elements", field.name())});
    }
    for (int i = 0; is_message && i < size; ++i) {
      const auto* nested = tree.GetTreeForNested(&field, i);
      if (nested != nullptr) find_empty_lists(at.GetRepeatedMessage(message, &field, i), *nested, source, issues);
    }
  }
}

}  // namespace

std::vector<SyntaxIssue> parse_text(const SourceText& source, Message& message, FieldLocations& locations) {
  IssueCollector collector(source);
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(locations.tree());
  parser.SetRecursionLimit(kNesting);
  parser.AllowUnknownField(true);
  const bool is_read = parser.ParseFromString(source.text(), &message);
  std::vector<SyntaxIssue> issues = collector.take();
  if (is_read) find_empty_lists(message, *locations.tree(), source, issues);
  ARBALEST_CHECK(is_read || !issues.empty());
  return issues;
}

std::string print_text(const Message& message) {
  TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  ARBALEST_CHECK(printer.PrintToString(message, &text));
  return text;
}

}  // namespace arbalest::jobs
