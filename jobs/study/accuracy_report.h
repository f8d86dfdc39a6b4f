// What `arbalest tune --objective time-to-accuracy` prints and keeps: tune.json and tune.svg.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "jobs/study/accuracy_study.h"

namespace arbalest::jobs {

// Names are what other programs read. What was not reached is null.
nlohmann::ordered_json to_json(const AccuracyStudy& study);
std::string to_text(const AccuracyStudy& study);
// Two charts side by side over learners of a device: the time to the target, where it was reached, and the accuracy at
// the end.
std::string to_svg(const AccuracyStudy& study);

}  // namespace arbalest::jobs
