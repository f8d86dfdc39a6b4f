#include "jobs/options/text_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include <google/protobuf/io/tokenizer.h>

#include "engine/error.h"
#include "jobs/options/schema_names.h"

namespace arbalest::jobs {

using google::protobuf::DescriptorPool;
using google::protobuf::Message;
using google::protobuf::TextFormat;

namespace {

constexpr int kNesting = 64;

// protobuf's words, where ours are clearer. $1, $2: what the pattern caught.
struct Rewording {
  const char* pattern;
  const char* replacement;
};
constexpr std::array kRewordings{
    Rewording{R"re(Non-repeated field "(.*)" is specified multiple times\.)re", "'$1' is given more than once"},
    Rewording{R"re(Field "(.*)" is specified along with field "(.*)", another member of oneof ".*"\.)re",
              "'$1' cannot stand beside '$2'; remove one of them"},
    Rewording{R"re(Message is too deep, the parser exceeded the configured recursion limit of (\d+)\.)re",
              "messages are nested more than $1 deep"},
    Rewording{R"re(Expected identifier, got: )re", "the text ends within a message; is a '}' missing?"},
    Rewording{R"re(Expected identifier, got: (.+))re", "expected the name of a field, not $1"},
    Rewording{R"re(Expected "(.*)", found "(.*)"\.)re", "expected '$1', found '$2'"},
    Rewording{R"re(Expected integer, got: -)re", "expected an integer that is not negative"},
    Rewording{R"re(Expected integer, got: (.+))re", "expected an integer, not $1"},
    Rewording{R"re(Integer out of range \((.*)\))re", "$1 is too large"},
    Rewording{R"re(Expected double, got: (.+))re", "expected a number, not $1"},
    Rewording{R"re(Expected string, got: (.+))re", "expected text in quotes, not $1"},
    Rewording{R"re(Invalid value for boolean field "(.*)"\. Value: "(.*)"\.)re", "$1 must be true or false, not $2"},
};

std::string reword(const std::string& raw) {
  std::smatch match;
  const std::regex kUnknownField(R"re(Message type "(.*)" has no field named "(.*)"\.)re");
  if (std::regex_match(raw, match, kUnknownField)) {
    const auto* type = DescriptorPool::generated_pool()->FindMessageTypeByName(match.str(1));
    if (type != nullptr) return no_such_field(*type, match.str(2));
  }
  const std::regex kUnknownValue(R"re(Unknown enumeration value of "(.*)" for field "(.*)"\.)re");
  if (std::regex_match(raw, match, kUnknownValue)) {
    const auto* field = find_enum_field(match.str(2));
    if (field != nullptr) return no_such_value(*field, match.str(1));
  }
  for (const Rewording& rewording : kRewordings) {
    const std::regex pattern(rewording.pattern);
    if (std::regex_match(raw, match, pattern)) return match.format(rewording.replacement);
  }
  std::string text = raw;
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// protobuf names a word in quotes and points behind it.
Position start_of_named_word(const SourceText& source, Position position, const std::string& raw) {
  const std::regex kQuoted("\"([^\"]*)\"");
  for (std::sregex_iterator quoted(raw.begin(), raw.end(), kQuoted), end; quoted != end; ++quoted) {
    const Position start = source.start_of((*quoted)[1].str(), position);
    if (start != position) return start;
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
