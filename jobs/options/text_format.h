// Protobuf text <-> messages: with text_outline.h the only place that knows protobuf's parser.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "jobs/options/source_text.h"
#include "jobs/options/text_outline.h"

namespace arbalest::jobs {

struct SyntaxIssue {
  Position position;
  std::string message;
};

struct SyntaxReport {
  std::vector<SyntaxIssue> issues;
  std::size_t unshown = 0;  // there are as many more
  bool stopped = false;     // reading stopped at a mistake; there may be more behind it
};

// A text with more mistakes than anyone reads is reported in part.
inline constexpr std::size_t kMaxShownIssues = 50;

inline constexpr std::size_t kMaxNesting = 64;  // of messages

// Reads `source`, whose outline is `outline`, into the empty `message`. Reports unknown fields, values of the wrong
// type, fields that are given twice or beside their alternative, and lists without elements, all of them; and the first
// mistake that leaves unclear what the rest means, such as a missing brace.
SyntaxReport parse_text(const SourceText& source, const TextOutline& outline, google::protobuf::Message& message);

// Reading it gives the same message.
std::string print_text(const google::protobuf::Message& message);
// The same with each element of `list`, a list of messages, on a line of its own.
std::string print_text(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor& list);

}  // namespace arbalest::jobs
