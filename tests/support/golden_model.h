// What a device computes for one mini-batch of a model of the zoo, against PyTorch in float64: the files that
// tests/goldens/make_goldens.py writes.
#pragma once

#include <string>

namespace arbalest::tests {

// Trains tests/goldens/<name>.json for one step on `device` ("cpu", "cuda:0") and compares the loss, the norm of each
// parameter's gradient, and up to 64 elements of it. Both sides must have the same parameters.
void check_golden(const std::string& name, const std::string& device = "cpu");

}  // namespace arbalest::tests
