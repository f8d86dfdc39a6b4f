// The output of `arbalest inspect JOB --links ... --devices-assumed ...` as a table and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "train/parallelism/parallelism_costs.h"

namespace arbalest::jobs {

std::string to_text(const ParallelismCosts& costs);
nlohmann::ordered_json to_json(const ParallelismCosts& costs);

}  // namespace arbalest::jobs
