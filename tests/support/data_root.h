// Finds real datasets for tests that need one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/skip.h"

namespace arbalest::tests {

// $ARBALEST_DATA/`dataset`; ends the test as skipped if the directory does not exist.
inline std::filesystem::path dataset_or_skip(const std::string& dataset) {
  const char* root = std::getenv("ARBALEST_DATA");
  if (root == nullptr) skip_test("no " + dataset + ": $ARBALEST_DATA is not set");
  std::filesystem::path directory = std::filesystem::path(root) / dataset;
  if (!std::filesystem::is_directory(directory))
    skip_test("no " + dataset + ": " + directory.string() + " is not there");
  return directory;
}

}  // namespace arbalest::tests
