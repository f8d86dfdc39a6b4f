// Compares what a saved model says about its input and outputs with what its job says.
#pragma once

#include <string>
#include <vector>

#include "options/job_options.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

struct SavedDescription {
  ModelDescription description;
  std::vector<std::string> warnings;  // where the job says something else
};

// Returns the description in the file at `path`, a model of the job. It is right where normalization, resize or class
// names of the job differ: the model was trained so. A file of an older version has none; its description then follows
// from the job. Throws kCheckpoint if it is damaged, or if input, shape, ids or outputs are not the job's.
SavedDescription read_saved_description(const JobOptions& job, const std::string& path);

// One line for the user if the rules are those of versions that recorded none; else "". `what`: what has the rules, as
// the subject of a sentence.
std::string old_rules_note(const dataflow::PixelRules& rules, const std::string& what);

// The job's data, prepared as the model was trained.
DataOptions data_as_trained(const DataOptions& data, const ModelDescription& description);

}  // namespace arbalest::jobs
