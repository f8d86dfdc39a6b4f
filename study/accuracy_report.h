// Output of `arbalest tune --objective time-to-accuracy`: the console text, tune.json and tune.svg.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "study/accuracy_study.h"

namespace arbalest::jobs {

// Names in the JSON are an interface for other programs. A value that was not reached is null.
nlohmann::ordered_json to_json(const AccuracyStudy& study);
std::string to_text(const AccuracyStudy& study);
// Two charts side by side over learners per device: the time to the target, if it was reached, and the accuracy at the
// end.
std::string to_svg(const AccuracyStudy& study);

}  // namespace arbalest::jobs
