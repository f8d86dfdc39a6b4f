// The output of `arbalest inspect` as a table and as JSON.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "train/inspection.h"

namespace arbalest::jobs {

std::string to_text(const Inspection& inspection);
nlohmann::ordered_json to_json(const Inspection& inspection);

}  // namespace arbalest::jobs
