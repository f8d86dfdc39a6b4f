// The alternatives of `synchronization` and of its switches: each names a scheme and has the scheme's fields.
#pragma once

#include <string>

#include "arbalest/v1/synchronization.pb.h"
#include "sma/options.h"

namespace arbalest::jobs {

struct PlacedScheme {
  sma::Options options;
  std::string path;  // path of the alternative; "" if none is chosen
};

// Reads the chosen alternative, which must have its defaults. `path`: the message's path in the job.
PlacedScheme read_scheme(const v1::Synchronization& message, const std::string& path);
PlacedScheme read_scheme(const v1::Switch& message, const std::string& path);

}  // namespace arbalest::jobs
