// What protobuf's parser says, in words for those who write jobs.
#pragma once

#include <string>

#include "jobs/options/source_text.h"
#include "jobs/options/text_outline.h"

namespace arbalest::jobs {

// Where the mistake begins that the parser reports at `position`: it names words in quotes and points behind them.
Position start_of_mistake(const SourceText& source, Position position, const std::string& raw);

// `raw`: what the parser says of the mistake at `position`. `place`: the field there, or null.
std::string reworded(const std::string& raw, const SourceText& source, Position position, const FieldPlace* place);

// Whether an unknown field is a number: the parser takes 01 of "0,01" for a name.
bool is_number_for_name(const std::string& raw);

// Whether the parser gave up a message for being nested too deep.
bool is_about_depth(const std::string& raw);

}  // namespace arbalest::jobs
