// The parts of a run that is under way. The Trainer owns them, and its helpers read and change them between rounds.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/run_state.h"
#include "checkpoint/saved_run.h"
#include "options/job_options.h"
#include "saved_model/model_description.h"
#include "train/context/notify_observers.h"
#include "train/context/run_context.h"
#include "train/context/run_observer.h"
#include "train/live/model_scores.h"
#include "train/processes/agreement.h"
#include "train/session/session.h"

namespace arbalest::jobs {

struct LiveRun {
  using Clock = std::chrono::steady_clock;

  LiveRun(const JobOptions& job_options, const RunContext& run_context);

  // Seconds on the run's clock: since `since`, and since the run began, with those of earlier processes.
  double seconds_since(Clock::time_point since) const {
    return std::chrono::duration<double>(context.now() - since).count();
  }
  double seconds() const { return seconds_since(start); }
  // The point on the run's clock `seconds` before now.
  Clock::time_point seconds_ago(double seconds) const {
    return context.now() - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  // Calls a function of all observers.
  template <typename... Parameters, typename... Arguments>
  void notify(void (RunObserver::*event)(Parameters...), const Arguments&... arguments) const {
    notify_observers(context.observers, event, arguments...);
  }

  // Whether this process has the observers and writes the files.
  bool leads() const { return world.rank() == 0; }

  // Tells the other processes what this one is doing, for their messages about it.
  void enter(engine::process::Phase phase) const;

  // Adds results of the epoch under way.
  void add(const scheduler::Progress& progress);
  // Waits for all work and returns its results; the results of all processes are then in the state. Throws Diverged if
  // any process has found it.
  scheduler::Progress drain();
  // The results of the epoch under way. Those of other processes since the last drain() are estimated.
  scheduler::Progress epoch_so_far() const;

  // This process's part of a list of the devices of all processes, such as a checkpoint has; the job's numbers if the
  // list is of other devices.
  std::vector<int> own_part(const std::vector<int>& all) const;
  // Notes that `per_device` learners of this process train from here on.
  void set_learners(std::vector<int> per_device);
  // The same, as a step of the schedule that replays the run. The learners of a switch are part of the job instead.
  void add_learner_step(std::vector<int> per_device);
  // The program, machine and data of this run, for checkpoints.
  RunOrigin origin() const;
  // Lowers the schedule's learning rate by the drops and roll-backs of the state.
  void apply_rate_factor() const;

  // Examples trained on so far, and a number of examples in epochs.
  std::int64_t examples() const { return state.examples + epoch_so_far().examples; }
  double epochs(std::int64_t count) const;

  JobOptions job;  // stays as it is once the session is open
  const RunContext& context;
  engine::process::World alone;
  engine::process::World& world;
  Requests decided;         // what the processes have decided after the last iteration
  Clock::time_point start;  // less the seconds of earlier processes of the run
  RunState state;
  ModelScores scores;
  RunSummary summary;
  std::optional<ResumeRow> resumed;
  Metadata metadata;                 // of the model's files: its description; on rank 0, from open_run() on
  std::string classes_text;          // one line: which class has which folder and name; "": classes are just numbers
  std::string weights_text;          // one line about the saved weights that the run starts from; "": none
  std::string precision_text;        // one line: what precision AUTO took, and why; "": the job names a precision
  std::unique_ptr<Session> session;  // null until open_run()

 private:
  std::vector<int> devices_of_rank_;
  scheduler::Progress here_;  // of this process, since the last drain(); only if there are others
};

}  // namespace arbalest::jobs
