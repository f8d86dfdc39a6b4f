// The hyper-parameters of a job, as TensorBoard's plugin "hparams" shows them.
#pragma once

#include <map>
#include <string>

#include <google/protobuf/struct.pb.h>

namespace arbalest::jobs {

// Returns the fields of a resolved job (JobOptions::resolved_text) that hold one number, text, enum or boolean, by
// path: "training.batch_size". Lists are left out, and the name of the job.
std::map<std::string, google::protobuf::Value> hyper_parameters(const std::string& job_text);

}  // namespace arbalest::jobs
