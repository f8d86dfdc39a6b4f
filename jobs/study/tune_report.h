// What `arbalest tune` prints and keeps: tune.json and tune.svg.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "jobs/study/tune.h"

namespace arbalest::jobs {

// Names are what other programs read. "regret" is null without a sweep, "efficiency" and "goodput" by
// throughput and where the noise scale is not known; "learners" and "threads" of a point are numbers
// where all devices have the same, else lists by device.
nlohmann::ordered_json to_json(const TuneResult& result);
std::string to_text(const TuneResult& result);
// Images per second over learners of a device (of all of them, where they have unlike numbers), as a picture on its
// own, readable on light and on dark ground.
std::string to_svg(const TuneResult& result);

}  // namespace arbalest::jobs
