// Converts between protobuf text and messages. Only this file and text_outline.h know protobuf's parser.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "options/text/source_text.h"
#include "options/text/text_outline.h"

namespace arbalest::jobs {

struct SyntaxIssue {
  Position position;
  std::string message;
};

struct SyntaxReport {
  std::vector<SyntaxIssue> issues;
  std::size_t unshown = 0;  // number of further issues
  bool stopped = false;     // whether reading stopped at a mistake; there may be more behind it
};

// Limit of the issues that are shown.
inline constexpr std::size_t kMaxShownIssues = 50;

inline constexpr std::size_t kMaxNesting = 64;  // levels of messages

// Reads `source`, whose outline is `outline`, into the empty `message`. Reports all unknown fields, values of the wrong
// type, fields that are given twice or beside another alternative, and lists without elements. Stops at the first
// mistake that makes the rest unclear, such as a missing brace.
SyntaxReport parse_text(const SourceText& source, const TextOutline& outline, google::protobuf::Message& message);

// Returns text that reads as the same message.
std::string print_text(const google::protobuf::Message& message);
// Does the same with each element of `list`, a list of messages, on a line of its own.
std::string print_text(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& list);

}  // namespace arbalest::jobs
