// Reads the learning rate of a job into its schedule.
#pragma once

#include <string>
#include <vector>

#include "arbalest/v1/learning_rate.pb.h"
#include "arbalest/v1/training.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "scheduler/replicas/learning_rate.h"

namespace arbalest::jobs {

scheduler::RateScaling from_proto(v1::LearningRate::RateScaling scaling);

// Sets the fields that are missing to their defaults. Schedules with an end get the job's end, `max_epochs`.
void fill_learning_rate(v1::LearningRate& rate, int max_epochs);

// Reads `rate`; it and `training` must have their defaults. The schedule's base is scaled to the mini-batch size. Adds
// issues with paths in the job; if there are any, the result must not be used.
scheduler::LearningRateSchedule read_learning_rate(const v1::LearningRate& rate, const v1::Training& training,
                                                   dataflow::FieldIssues& issues);

// Warnings about settings that work and may surprise, in a job of `max_epochs`.
std::vector<std::string> learning_rate_warnings(const scheduler::LearningRateSchedule& schedule, int max_epochs);

}  // namespace arbalest::jobs
