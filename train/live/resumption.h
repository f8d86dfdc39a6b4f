// Goes on from a checkpoint.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/saved_run.h"
#include "engine/process/world.h"
#include "options/job_options.h"
#include "train/session/session.h"

namespace arbalest::jobs {

// Gives a job that names no number of learners the number of the checkpoint, which was chosen for the machine that the
// run began on, or by a switch. `learners`: those of the checkpoint on this process's devices. `devices`:
// device_names() of this run. Call before the session is opened or goes back.
void take_learners(const SavedRun& saved, const std::vector<int>& learners, const std::vector<std::string>& devices,
                   JobOptions& job);

// Lets the job decode image files as the run did before, and adds a warning if those are rules of an older version.
void take_pixel_rules(const SavedRun& saved, JobOptions& job);

// Goes on from `saved`: sets the session's learners to its state, and `state` to its run. With the learners and devices
// of the checkpoint, training goes on as if it had never stopped. If the job asks for other learners or devices, it
// goes on as a run whose schedule changes the number there. A tuned job keeps the number that it had, or as many
// learners in all as equal numbers on other devices allow. Adds warnings to `job` if bytes may differ because program
// or processor do. Throws kCheckpoint if the checkpoint is of another dataset or model. `learners`: as above.
// Each process reads the learners that it needs (processes/shared_learners.h). A call of World's operations.
void resume(SavedRun& saved, const std::vector<int>& learners, const RunOrigin& present, JobOptions& job,
            Session& session, engine::process::World& world, RunState& state);

// Returns the program, machine and data of this run. `devices`: device_names().
RunOrigin origin_of(const JobOptions& job, const Session& session, const std::string& program,
                    const std::vector<std::string>& devices);

}  // namespace arbalest::jobs
