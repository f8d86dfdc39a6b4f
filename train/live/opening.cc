#include "train/live/opening.h"

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/best_model.h"
#include "checkpoint/job/job_changes.h"
#include "train/data/class_table.h"
#include "train/live/learned_nothing.h"
#include "train/live/resumption.h"
#include "train/live/run_start.h"
#include "train/processes/shared_data.h"
#include "train/processes/shared_results.h"
#include "train/session/settled_precision.h"
#include "train/weights/describe_model.h"
#include "train/weights/initial_weights.h"

namespace arbalest::jobs {

namespace {

// The absolute path; "" for "".
std::string absolute(const std::string& path) {
  return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
}

// A resumed run takes the kernels of its checkpoint, unless the job wants those of the rule.
engine::DeviceOptions device_options_of(const LiveRun& run) {
  engine::DeviceOptions options = run.context.device_options;
  if (run.context.resumed != nullptr) options.recorded_kernels = run.context.resumed->run.kernels;
  if (run.job.training.kernels == engine::KernelSelection::kFixed) options.recorded_kernels.clear();
  return options;
}

// The kernels that its trial has chosen become recorded ones.
void settle_precision_of(LiveRun& run, engine::DeviceOptions& options) {
  SettledPrecision settled = settle_precision(run.job, options, run.world);
  run.precision_text = std::move(settled.text);
  run.summary.precision = run.job.training.precision;
  options.recorded_kernels.insert(options.recorded_kernels.end(), std::make_move_iterator(settled.kernels.begin()),
                                  std::make_move_iterator(settled.kernels.end()));
}

}  // namespace

void open_run(LiveRun& run) {
  const RunContext& context = run.context;
  const bool is_new = context.resumed == nullptr;
  std::optional<InitialWeights> weights;
  if (is_new && run.job.initialize) {
    together(run.world, [&] { weights = read_initial_weights(*run.job.initialize, *run.job.graph); });
  }
  if (!is_new) {
    const std::vector<int> learners = run.own_part(context.resumed->run.learners_per_device);
    take_learners(*context.resumed, learners, run.summary.devices, run.job);
    take_pixel_rules(*context.resumed, run.job);
  }
  engine::DeviceOptions options = device_options_of(run);
  if (is_new) settle_precision_of(run, options);
  run.session = open_session(run.job, context.data_root, options, Session::Input::kResident, context.world);
  Session& session = *run.session;
  require_same_data(run.world, session.training_data());
  require_same_data(run.world, session.evaluation_data());
  together(run.world, [&] {
    if (!run.leads()) return;
    const ClassTable classes = read_class_table(run.job.data, context.data_root, run.job.warnings);
    run.metadata = to_metadata(describe_model(run.job, classes.names));
    run.classes_text = to_line(classes);
  });
  if (is_new) {
    run.state.untrained_loss = untrained_loss(run.job, session);  // and not that of the weights that it starts from
    run.state.skipped_examples = -session.skipped_examples();     // they are read again
  }
  if (weights) {
    load_initial_weights(*weights, session.scheduler());
    run.weights_text = weights->text();
  }
  run.add_learner_step(run.job.learners_per_device);  // the session may have fewer learners than the job
  session.training_ring().set_observer(context.training_input);
  session.test_ring().set_observer(context.evaluation_input);
  if (session.validation_ring() != nullptr) session.validation_ring()->set_observer(context.evaluation_input);
}

void resume_run(LiveRun& run, SavedRun& saved) {
  RunState& state = run.state;
  resume(saved, run.own_part(saved.run.learners_per_device), run.origin(), run.job, *run.session, run.world, state);
  run.scores.continue_from(state.scores);
  run.start -=
      std::chrono::duration_cast<LiveRun::Clock::duration>(std::chrono::duration<double>(state.elapsed_seconds));
  run.summary.epochs = state.epochs;
  if (target_of(saved.job_text) != run.job.training.target_accuracy) state.time_to_accuracy_seconds.reset();
  run.summary.time_to_accuracy_seconds = state.time_to_accuracy_seconds;
  run.resumed = ResumeRow{.batch = saved.training.batches,
                          .epoch = run.session->scheduler().progress(),
                          .elapsed_seconds = state.elapsed_seconds,
                          .path = run.context.resumed_path,
                          .from = saved.run.learners_per_device,
                          .to = {}};
  run.add_learner_step(state.learners_per_device);
  run.resumed->to = run.summary.learners_per_device;
  run.apply_rate_factor();
  saved.training = {};
  saved.model = {};
}

void announce_run(LiveRun& run) {
  RunStart start = describe_run(run.job, *run.session, run.scores.accuracy_set());
  start.warnings = warnings_of_all(run.world, run.job.warnings);
  start.devices = run.summary.devices;
  start.kernels = run.session->kernel_choices();
  start.learners_per_device = run.summary.learners_per_device;
  start.learner_steps = run.state.learners;
  start.largest_team = run.session->largest_team();
  start.team = run.state.team;
  start.elapsed_seconds = run.seconds();
  start.data_root = absolute(run.context.data_root);
  start.output_directory = run.context.output_directory;
  start.resumed = run.resumed;
  start.weights = run.weights_text;
  start.precision_choice = run.precision_text;
  start.classes = run.classes_text;
  run.notify(&RunObserver::on_start, start);
}

void take_over_best(LiveRun& run, RunCheckpoints* checkpoints) {
  if (!run.leads() || run.context.output_directory.empty()) return;
  const BestModelNeeds needs{.run_directory = run.context.output_directory,
                             .checkpoint = run.context.resumed_path,
                             .batches = run.session->scheduler().batches(),
                             .best = run.state.best_model,
                             .keeps = checkpoints != nullptr && run.job.checkpoint.keep_best > 0,
                             .order = run.scores.order(),
                             .metadata = run.metadata};
  run.state.best_model =
      take_over_best_model(needs, [&](const std::string& text) { run.notify(&RunObserver::on_warning, text); });
  if (checkpoints != nullptr) checkpoints->set_best(run.state.best_model);
}

}  // namespace arbalest::jobs
