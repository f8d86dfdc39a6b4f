// Protobuf text <-> messages: the only place that knows protobuf's parser.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "jobs/options/field_locations.h"
#include "jobs/options/source_text.h"

namespace arbalest::jobs {

struct SyntaxIssue {
  Position position;
  std::string message;
  bool is_last = false;  // reading stopped here; there may be more
};

// A text with more mistakes than anyone reads is reported in part.
inline constexpr std::size_t kMaxShownIssues = 50;

// Reads `source` into the empty `message`. Returns the unknown fields (at most kMaxShownIssues), the lists without
// elements, and the first other mistake of form, at which reading stops; empty if the text is well formed. Messages may
// be nested 64 deep.
std::vector<SyntaxIssue> parse_text(const SourceText& source, google::protobuf::Message& message,
                                    FieldLocations& locations);

// Reading it gives the same message.
std::string print_text(const google::protobuf::Message& message);

}  // namespace arbalest::jobs
