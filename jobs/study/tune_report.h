// What `arbalest tune` prints and keeps: tune.json and tune.svg.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "jobs/study/tune.h"

namespace arbalest::jobs {

// Names are what other programs read. "regret" is null without a sweep.
nlohmann::ordered_json to_json(const TuneResult& result);
std::string to_text(const TuneResult& result);
// Images per second over learners of a device, as a picture on its own, readable on light and on dark ground.
std::string to_svg(const TuneResult& result);

}  // namespace arbalest::jobs
