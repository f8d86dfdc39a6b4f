// Tells a run that has learned nothing although every number stayed finite, as after too large a first step: its
// training loss is then that of a model worse than an untrained one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "options/job_options.h"
#include "train/session/session.h"

namespace arbalest::jobs {

// The mean training loss of the session's model, which must not have been trained, over its first mini-batches: those
// of training, with the same augmentation. None if it is not finite. A call of World's operations.
std::optional<double> untrained_loss(const JobOptions& job, Session& session);

// What is wrong with a run that has ended: the mean training loss of its last whole epoch is above 1.1 times that of
// the untrained model. "" if it is not, or if one of the losses is not known: no epoch has ended, or the run began with
// a program that did not measure them. After fewer than 20 updates the bound is 10 times, because the first steps of
// good runs may raise the loss. `updates`: mini-batches trained in the whole run; rows, for models that are updated by
// rows.
std::string learned_nothing(std::optional<double> untrained, std::optional<double> last_epoch, std::int64_t updates);

}  // namespace arbalest::jobs
