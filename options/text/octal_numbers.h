// Finds numbers with a leading zero, which protobuf's text format reads as octal: 064 is 52.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/text/source_text.h"
#include "options/text/text_outline.h"

namespace arbalest::jobs {

struct OctalNumber {
  Position position;
  std::string message;  // "batch_size: 064 is octal 52, because of its leading zero; write 64 or 52"
};

// Returns the integers with a leading zero among the values of fields, in the order of the text, which must be well
// formed. 0 itself, hexadecimal numbers, fractions, and what stands in quotes or comments are none.
std::vector<OctalNumber> octal_numbers(const SourceText& source, const TextOutline& outline);

// For texts that are no protobuf text and whose numbers are decimal: whether `digits` has a leading zero, and so leaves
// open what is meant.
bool has_leading_zero(std::string_view digits);

}  // namespace arbalest::jobs
