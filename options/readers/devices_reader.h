// Reads the devices of a job.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "engine/backends/devices.h"

namespace arbalest::jobs {

// Reads the devices that `job` names and checks them against this machine. Adds an issue for each that cannot be used.
std::vector<engine::DeviceSpec> read_devices(const v1::Job& job, dataflow::FieldIssues& issues);

}  // namespace arbalest::jobs
