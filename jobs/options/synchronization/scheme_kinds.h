// The alternatives of `synchronization` and of its switches: each names a scheme and has the scheme's fields.
#pragma once

#include <string>

#include "arbalest/v1/synchronization.pb.h"
#include "dataflow/models/field_issues.h"
#include "sma/options.h"

namespace arbalest::jobs {

// Sets the missing fields of the chosen alternative to the scheme's defaults. Without an alternative `synchronization`
// becomes sma, and a switch stays as it is.
void fill_scheme(v1::Synchronization& synchronization);
void fill_scheme(v1::Switch& message);

struct PlacedScheme {
  sma::Options options;
  std::string path;  // path of the alternative; "" if none is chosen
};

// Reads the chosen alternative, which must have its defaults. `path`: the message's path in the job. Adds an issue for
// each field that is out of range.
PlacedScheme read_scheme(const v1::Synchronization& message, const std::string& path, dataflow::FieldIssues& issues);
PlacedScheme read_scheme(const v1::Switch& message, const std::string& path, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
