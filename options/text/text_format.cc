#include "options/text/text_format.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "engine/base/error.h"
#include "options/text/parser_messages.h"

namespace arbalest::jobs {

using google::protobuf::Message;
using google::protobuf::TextFormat;

namespace {

struct RawIssue {
  int line = 0;  // in protobuf's counting
  int column = 0;
  std::string message;
};

class IssueCollector final : public google::protobuf::io::ErrorCollector {
 public:
  // One mistake can be reported twice: by the tokenizer, and by the parser that misses the token.
  void AddError(int line, int column, const std::string& message) override {
    if (!error_.has_value()) error_ = {std::max(line, 0), std::max(column, 0), message};
  }
  // The parser warns of unknown fields and goes on, so that all of them are found.
  void AddWarning(int line, int column, const std::string& message) override {
    if (!error_.has_value()) warnings_.push_back({std::max(line, 0), std::max(column, 0), message});
  }

  const std::optional<RawIssue>& error() const { return error_; }
  const std::vector<RawIssue>& warnings() const { return warnings_; }

 private:
  std::optional<RawIssue> error_;
  std::vector<RawIssue> warnings_;
};

// The parser stops at a value that it does not understand. The reader then renames the field to a name that the schema
// does not know, which makes the parser skip it, and parses the text again.
class Reader {
 public:
  Reader(const SourceText& source, const TextOutline& outline)
      : source_(source), outline_(outline), text_(source.name(), source.text()) {}

  SyntaxReport read(Message& message) {
    for (;;) {
      IssueCollector collector;
      const bool is_read = parse(message, collector);
      if (!is_read && !is_known(collector) && pass_over(*collector.error())) continue;
      report_.stopped = !is_read;
      report_unknown_fields(collector.warnings());
      report_empty_lists();
      return std::move(report_);
    }
  }

 private:
  bool parse(Message& message, IssueCollector& collector) const {
    TextFormat::Parser parser;
    parser.RecordErrorsTo(&collector);
    parser.SetRecursionLimit(static_cast<int>(kMaxNesting));
    parser.AllowUnknownField(true);
    const bool is_read = parser.ParseFromString(text_.text(), &message);
    ARBALEST_CHECK(is_read || collector.error().has_value());
    return is_read;
  }

  Position position_of(const RawIssue& issue) const {
    return start_of_mistake(text_, text_.from_protobuf(issue.line, issue.column), issue.message);
  }

  // Whether the parser stopped right behind a number that it took for a field's name; both reports are one mistake.
  bool is_known(const IssueCollector& collector) const {
    if (collector.warnings().empty() || !is_number_for_name(collector.warnings().back().message)) return false;
    const RawIssue& error = *collector.error();
    const Position stop = text_.from_protobuf(error.line, error.column);
    return start_of_mistake(text_, stop, collector.warnings().back().message) ==
           position_of(collector.warnings().back());
  }

  // Reports the mistake at which the parser stopped, and hides its field. Returns false if that does not help.
  bool pass_over(const RawIssue& issue) {
    const Position position = position_of(issue);
    if (!stops_.insert(position).second) return false;  // hiding a field has not helped
    const FieldPlace* place = outline_.at(position);
    report_.issues.push_back({position, reworded(issue.message, source_, position, place)});
    if (place == nullptr || is_about_depth(issue.message) || stops_.size() >= kMaxShownIssues) return false;
    if (!hidden_.insert(place->name).second) return false;
    std::string text = text_.text();
    for (std::size_t at = source_.offset(place->name); at < text.size() && is_in_name(text[at]); ++at) text[at] = 'X';
    if (place->is_empty_list) make_skippable(text, source_.offset(place->value));
    text_ = SourceText(source_.name(), std::move(text));
    return true;
  }

  // The parser cannot skip the empty list at `open`, but an empty message.
  static void make_skippable(std::string& text, std::size_t open) {
    const std::size_t close = text.find_first_not_of(" \t\r\n", open + 1);
    if (close >= text.size() || text[close] != ']') return;
    text[open] = '{';
    text[close] = '}';
  }

  static bool is_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  void report_unknown_fields(const std::vector<RawIssue>& warnings) {
    std::size_t shown = 0;
    for (const RawIssue& warning : warnings) {
      const Position position = position_of(warning);
      if (hidden_.contains(position)) continue;
      if (++shown > kMaxShownIssues) {
        ++report_.unshown;
      } else {
        report_.issues.push_back({position, reworded(warning.message, source_, position, nullptr)});
      }
    }
  }

  // Protobuf treats empty lists as missing, so they would silently mean the default.
  void report_empty_lists() {
    std::size_t shown = 0;
    for (const FieldPlace& place : outline_.fields()) {
      if (!place.is_empty_list || place.field == nullptr || !place.field->is_repeated()) continue;
      if (++shown > kMaxShownIssues) {
        ++report_.unshown;
      } else {
        report_.issues.push_back({place.name, fmt::format("{} is an empty list; name its elements, or remove the field",
                                                          place.field->name())});
      }
    }
  }

  const SourceText& source_;
  const TextOutline& outline_;
  SourceText text_;            // with skipped fields renamed
  std::set<Position> hidden_;  // names of the skipped fields
  std::set<Position> stops_;
  SyntaxReport report_;
};

std::string print(TextFormat::Printer& printer, const Message& message) {
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  ARBALEST_CHECK(printer.PrintToString(message, &text));
  return text;
}

class OneLinePrinter final : public TextFormat::FastFieldValuePrinter {
 public:
  void PrintMessageStart(const Message&, int, int, bool, TextFormat::BaseTextGenerator* generator) const override {
    generator->PrintLiteral(" { ");
  }
  bool PrintMessageContent(const Message& message, int, int, bool,
                           TextFormat::BaseTextGenerator* generator) const override {
    TextFormat::Printer printer;
    printer.SetSingleLineMode(true);
    generator->PrintString(print(printer, message));  // ends with a space
    return true;
  }
  void PrintMessageEnd(const Message&, int, int, bool, TextFormat::BaseTextGenerator* generator) const override {
    generator->PrintLiteral("}\n");
  }
};

}  // namespace

SyntaxReport parse_text(const SourceText& source, const TextOutline& outline, Message& message) {
  return Reader(source, outline).read(message);
}

std::string print_text(const Message& message) {
  TextFormat::Printer printer;
  return print(printer, message);
}

std::string print_text(const Message& message, const google::protobuf::FieldDescriptor& list) {
  TextFormat::Printer printer;
  ARBALEST_CHECK(printer.RegisterFieldValuePrinter(&list, new OneLinePrinter));  // the printer takes ownership
  return print(printer, message);
}

}  // namespace arbalest::jobs
