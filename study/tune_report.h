// Output of `arbalest tune`: the console text, tune.json and tune.svg.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "study/tune.h"

namespace arbalest::jobs {

// Names are an interface for other programs. "regret" is null without a sweep; "efficiency" and "goodput" are null if
// throughput decides or the noise scale is unknown, "lost" and "images_per_processor_second" if the processor time was
// not measured, "gain" if one learner was not measured. "learners" and "threads" of a point are numbers if all devices
// have the same, else lists by device.
nlohmann::ordered_json to_json(const TuneResult& result);
std::string to_text(const TuneResult& result);
// A chart of images per second over learners per device (of all devices if their numbers differ), as a file of its own,
// readable on light and dark background. Whiskers are two standard errors long in both directions.
std::string to_svg(const TuneResult& result);

}  // namespace arbalest::jobs
