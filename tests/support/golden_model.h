// Compares a device's results for one mini-batch of a zoo model with PyTorch's in float64, from files that
// tests/goldens/make_goldens.py writes.
#pragma once

#include <string>

namespace arbalest::tests {

// Trains tests/goldens/<name>.json for one step on `device` ("cpu", "cuda:0"). Compares the loss, the norm of each
// parameter's gradient, and up to 64 of its elements. Both sides must have the same parameters.
void check_golden(const std::string& name, const std::string& device = "cpu");

// The model of tests/goldens/<name>.json as a job file names it: "vgg { depth: 11 }".
std::string golden_model(const std::string& name);

}  // namespace arbalest::tests
