// A run of the program that takes seconds, and its output.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace arbalest::tests {

// Arguments for one epoch of a linear model on one core, into "run".
inline const std::vector<std::string> kSmall = {
    "train", Program::config("logistic-digits"), "--set",    "training.max_epochs=1",
    "--set", "learners.per_device.fixed=1",      "--output", "run"};

inline nlohmann::json summary_of(const std::filesystem::path& run) {
  return nlohmann::json::parse(read_text(run / "summary.json"));
}

}  // namespace arbalest::tests
