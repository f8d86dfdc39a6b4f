// The learning rate of a job -> its schedule.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/learning_rate.pb.h"
#include "dataflow/models/field_issues.h"
#include "scheduler/learning_rate.h"

namespace arbalest::jobs {

scheduler::LearnerScaling from_proto(v1::LearningRate::LearnerScaling scaling);

// Writes the defaults of the fields that the job leaves out. Schedules that have an end get the job's, `max_epochs`.
void fill_learning_rate(v1::LearningRate& rate, int max_epochs);

// Reads `rate`, which has its defaults. Adds what is wrong to `issues`, with paths in the job; the result is then not
// to be used.
scheduler::LearningRateSchedule read_learning_rate(const v1::LearningRate& rate, int max_epochs,
                                                   dataflow::FieldIssues& issues);

// What works and may surprise, in a job of `max_epochs`.
std::vector<std::string> learning_rate_warnings(const scheduler::LearningRateSchedule& schedule, int max_epochs);

}  // namespace arbalest::jobs
