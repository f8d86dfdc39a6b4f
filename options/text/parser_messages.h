// Rewrites the messages of protobuf's parser for authors of job files.
#pragma once

#include <string>

#include "options/text/source_text.h"
#include "options/text/text_outline.h"

namespace arbalest::jobs {

// Returns the begin of the mistake reported at `position`: protobuf names a word in quotes and points behind it.
Position start_of_mistake(const SourceText& source, Position position, const std::string& raw);

// `raw`: the parser's message about the mistake at `position`. `place`: the field there, or null.
std::string reworded(const std::string& raw, const SourceText& source, Position position, const FieldPlace* place);

// Whether the unknown field is a number: the parser takes 01 of "0,01" for a name.
bool is_number_for_name(const std::string& raw);

// Whether the parser refused a message because it is nested too deep.
bool is_about_depth(const std::string& raw);

}  // namespace arbalest::jobs
