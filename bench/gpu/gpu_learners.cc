// How does a GPU's throughput grow with its learners, and what do averaging and the host cost? (Formulas:
// bench/README.md.)
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/gpu/gpu.h"
#include "bench/gpu/gpu_averaging.h"
#include "bench/gpu/gpu_questions.h"
#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "bench/support/step_clock.h"
#include "engine/base/error.h"
#include "engine/passes/averaging.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  JobArguments job;
  std::string device = "cuda:0";
  std::string precision = "FP32";
  int batch = 32;
  std::vector<int> learners{1, 2, 4, 8, 16, 32};
  std::vector<int> teams{1};         // sizes; a number of learners is measured with those that divide it
  std::vector<std::string> kernels;  // values of training.kernels; none: the job's own
  int turns = 15;
  double seconds = 0.1;  // per turn
  bool all_reduce = true;
};

// Comparing this averaging period with averaging in every step shows the cost of averaging.
constexpr int kLongPeriod = 8;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Speed {
  double step_seconds = 0.0;  // time in which every learner does one step
  double images_per_second = 0.0;
  double host_seconds = 0.0;  // CPU time of the scheduler's thread per step of one learner
  double host_share = 0.0;    // CPU time of the scheduler's thread as a fraction of a turn
};

// A session that trains for a given time per call.
class Training {
 public:
  Training(const jobs::JobOptions& job, const std::string& data_root, engine::StreamObserver* observer)
      : learners_(job.learners_per_device.front()),
        teams_(learners_ / job.team),
        session_(job, data_root, {.observer = observer}) {}

  Speed run_for(double duration) {
    scheduler::Progress progress;
    const auto start = Clock::now();
    while (seconds_since(start) < duration) progress.add(session_.scheduler().advance(session_.training_ring(), 1));
    progress.add(session_.scheduler().drain());
    const double elapsed = seconds_since(start);
    const auto steps = static_cast<double>(progress.tasks);
    return {elapsed * learners_ / steps, static_cast<double>(progress.examples) / elapsed,
            progress.host_seconds / steps, progress.host_seconds / elapsed};
  }

  // Elements of each averaged vector.
  std::size_t elements() const { return static_cast<std::size_t>(session_.parameters()); }

  StepClock::Times time_steps(StepClock& clock) {
    constexpr int kRounds = 100;
    clock.start(kRounds * teams_);
    session_.scheduler().advance(session_.training_ring(), kRounds);
    session_.scheduler().drain();
    return clock.stop();
  }

 private:
  int learners_;
  int teams_;
  jobs::Session session_;
};

// All contenders with one number of learners in teams of one size, and the results of their turns. `kernels`: who
// chooses the kernels ("TIMED"); "": as the job says
class Point {
 public:
  Point(const Arguments& arguments, int learners, int team, const std::string& kernels)
      : learners_(learners), team_(team) {
    if (!kernels.empty()) changes_.push_back("training.kernels=" + kernels);
    const jobs::JobOptions job = load(arguments, 1);
    is_fixed_ = job.training.kernels == engine::KernelSelection::kFixed;
    const std::string& data_root = arguments.job.data_root;
    every_step_.emplace(job, data_root, &clock_);
    if (learners == 1) return;  // a single learner is not averaged
    const std::int64_t batches = job.data.training_examples.value() / job.training.batch_size;
    period_ = static_cast<int>(std::min<std::int64_t>(kLongPeriod, batches / learners));
    if (period_ > 1) seldom_.emplace(load(arguments, period_), data_root, nullptr);
    if (!arguments.all_reduce) return;
    all_reduce_.emplace(arguments.device, every_step_->elements() + engine::kAveragingTail);
    reduced_.emplace(job, data_root, &*all_reduce_);
  }

  int learners() const { return learners_; }
  int team() const { return team_; }
  const char* kernels() const { return is_fixed_ ? "FIXED" : "TIMED"; }

  void turn(double seconds) {
    const Speed speed = every_step_->run_for(seconds);
    images_per_second_.push_back(speed.images_per_second);
    host_seconds_.push_back(speed.host_seconds);
    host_shares_.push_back(speed.host_share);
    if (seldom_) {
      // The two differ by (1 - 1 / period) averagings per step.
      const double saved = 1.0 - seldom_->run_for(seconds).step_seconds / speed.step_seconds;
      averaging_shares_.push_back(saved * period_ / (period_ - 1));
    }
    if (reduced_) all_reduce_shares_.push_back(reduced_->run_for(seconds).step_seconds / speed.step_seconds - 1.0);
  }

  void forget() {
    for (auto* values : {&images_per_second_, &host_seconds_, &host_shares_, &averaging_shares_, &all_reduce_shares_}) {
      values->clear();
    }
  }

  void time_steps(const std::string& device) {
    times_ = every_step_->time_steps(clock_);
    if (learners_ > 1) averaging_ = time_averaging(device, learners_, every_step_->elements());
  }

  double images_per_second() const { return summarize(images_per_second_).median; }
  nlohmann::ordered_json to_json() const {
    const auto summary = [](const std::vector<double>& values) {
      return values.empty() ? nlohmann::ordered_json() : bench::to_json(summarize(values));
    };
    return {
        {"learners", learners_},
        {"team", team_},
        {"kernels", kernels()},
        {"images_per_second", summary(images_per_second_)},
        {"host_seconds_of_step", summary(host_seconds_)},
        {"host_share", summary(host_shares_)},
        {"averaging_share", summary(averaging_shares_)},
        {"all_reduce_share", summary(all_reduce_shares_)},
        {"averaging_seconds_alone", averaging_ ? nlohmann::ordered_json(averaging_->one_device) : nullptr},
        {"averaging_seconds_of_several", averaging_ ? nlohmann::ordered_json(averaging_->several_devices) : nullptr},
        {"streams_busy", times_.busy},
        {"gap_seconds", times_.gap_seconds},
        {"step_seconds", times_.step_seconds}};
  }

 private:
  jobs::JobOptions load(const Arguments& arguments, int period) const {
    std::vector<std::string> changes{"devices=" + arguments.device,
                                     fmt::format("learners.per_device.fixed={}", learners_),
                                     fmt::format("learners.per_device.team={}", team_),
                                     fmt::format("training.batch_size={}", arguments.batch),
                                     "training.precision=" + arguments.precision,
                                     fmt::format("synchronization.kind=sma{{period: {}}}", period),
                                     "learning_rate.base=0.001",  // many epochs must not diverge
                                     "learning_rate.with_learners=KEEP"};
    changes.insert(changes.end(), changes_.begin(), changes_.end());
    return arguments.job.load(changes);
  }

  int learners_;
  int team_;
  std::vector<std::string> changes_;  // of the job, beyond those of all points
  bool is_fixed_ = false;
  int period_ = 1;
  StepClock clock_;
  std::optional<CopiedAllReduce> all_reduce_;
  std::optional<Training> every_step_;
  std::optional<Training> seldom_;   // averaging every period_ steps
  std::optional<Training> reduced_;  // averaging every step, with the copies of an all-reduce
  std::vector<double> images_per_second_, host_seconds_, host_shares_, averaging_shares_, all_reduce_shares_;
  StepClock::Times times_;
  std::optional<AveragingSeconds> averaging_;
};

void print_line(const nlohmann::ordered_json& point) {
  const auto median = [&](const char* name, double factor) {
    return point[name].is_null() ? std::string("-")
                                 : fmt::format("{:.2f}", factor * point[name]["median"].get<double>());
  };
  fmt::print(stderr,
             "{:>3} learners: teams of {}, kernels {}, {:>10} images/s (spread {:.1f} %), host {} us a step and {} % "
             "of its time, "
             "averaging {} %, "
             "as many bytes as an all-reduce of two GPUs {} %, streams busy {:.1f} %\n",
             point["learners"].get<int>(), point["team"].get<int>(), point["kernels"].get<std::string>(),
             median("images_per_second", 1.0), 100.0 * point["images_per_second"]["spread"].get<double>(),
             median("host_seconds_of_step", 1e6), median("host_share", 100.0), median("averaging_share", 100.0),
             median("all_reduce_share", 100.0), 100.0 * point["streams_busy"].get<double>());
}

void run(const Arguments& arguments) {
  const std::string gpu = gpu_or_skip(arguments.device);
  const std::vector<std::string> all_kernels =
      arguments.kernels.empty() ? std::vector<std::string>{""} : arguments.kernels;
  std::vector<std::unique_ptr<Point>> points;
  for (const int learners : arguments.learners) {
    for (const int team : arguments.teams) {
      if (learners % team != 0) continue;
      for (const std::string& kernels : all_kernels) {
        points.push_back(std::make_unique<Point>(arguments, learners, team, kernels));
      }
    }
  }
  if (points.empty()) engine::fail(engine::ErrorKind::kUsage, "no size of a team divides a number of learners");
  for (const auto& point : points) point->turn(arguments.seconds);
  for (const auto& point : points) point->forget();  // the turn was the warm-up
  for (int turn = 0; turn < arguments.turns; ++turn) {
    // The order of turns alternates, so that a drift of the machine favors none.
    for (std::size_t i = 0; i < points.size(); ++i) {
      points[turn % 2 == 0 ? i : points.size() - 1 - i]->turn(arguments.seconds);
    }
  }
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (const auto& point : points) {
    point->time_steps(arguments.device);
    curve.push_back(point->to_json());
    print_line(curve.back());
  }
  const auto slower = [](const auto& a, const auto& b) { return a->images_per_second() < b->images_per_second(); };
  const Point& best = **std::ranges::max_element(points, slower);
  const double gain = best.images_per_second() / points.front()->images_per_second();
  const Point& control = *points.front();
  fmt::print(stderr,
             "best: {} learners in teams of {}, kernels {}: {:.0f} images/s, {:.2f} times those of {} in teams of {}, "
             "kernels {}\n",
             best.learners(), best.team(), best.kernels(), best.images_per_second(), gain, control.learners(),
             control.team(), control.kernels());
  const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  print_result("learners of a GPU", {{"job", arguments.job.file},
                                     {"batch", arguments.batch},
                                     {"precision", arguments.precision},
                                     {"gpu", gpu},
                                     {"connections", connections == nullptr ? "default" : connections},
                                     {"turns", arguments.turns},
                                     {"seconds_per_turn", arguments.seconds},
                                     {"curve", curve},
                                     {"best_learners", best.learners()},
                                     {"best_team", best.team()},
                                     {"best_kernels", best.kernels()},
                                     {"gain", gain}});
}

}  // namespace

void add_learners(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("learners", "Images/s over the number of learners, with and without averaging every step.");
  const auto arguments = std::make_shared<Arguments>();
  add_job(*command, arguments->job);
  command->add_option("--device", arguments->device, "GPU")->capture_default_str();
  command->add_option("--batch", arguments->batch, "examples of a mini-batch")->capture_default_str();
  command->add_option("--precision", arguments->precision, "FP32, TF32 or BF16")->capture_default_str();
  command->add_option("--learners", arguments->learners, "numbers of learners; the first is the control")
      ->capture_default_str();
  command->add_option("--teams", arguments->teams, "sizes of teams; a number of learners gets those that divide it")
      ->capture_default_str();
  command
      ->add_option("--kernels", arguments->kernels,
                   "TIMED, FIXED or both: who chooses the kernels of each; else as the job says")
      ->check(CLI::IsMember({"TIMED", "FIXED"}));
  command->add_option("--turns", arguments->turns, "turns of each")->check(CLI::Range(1, 1000));
  command->add_option("--seconds", arguments->seconds, "length of a turn")->check(CLI::Range(0.01, 600.0));
  command->add_flag("!--no-all-reduce", arguments->all_reduce,
                    "do not measure copies of as many bytes as an all-reduce of two GPUs moves");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace arbalest::bench
