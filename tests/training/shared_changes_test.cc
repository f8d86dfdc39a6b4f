// The auto-tuner over several processes, whose worlds are in threads of this process.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/training/memory_limit.h"
#include "tests/training/whole_run.h"
#include "train/inspection.h"
#include "train/learners/devices_search.h"
#include "train/learners/shared_changes.h"
#include "train/learners/tuned_devices.h"
#include "train/processes/agreement.h"
#include "train/processes/shared_results.h"
#include "train/session/session.h"

namespace arbalest::tests {

namespace {

using engine::process::World;

int total(const std::vector<int>& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

// The first `count` cores of this machine, as one device.
engine::DeviceSpec cores(std::size_t first, std::size_t count = 1) {
  const std::vector<int> allowed = engine::host::allowed_cores();
  if (allowed.size() < first + count) skip_test(fmt::format("it takes {} cores", first + count));
  const std::vector<int> some(allowed.begin() + static_cast<std::ptrdiff_t>(first),
                              allowed.begin() + static_cast<std::ptrdiff_t>(first + count));
  return engine::parse_device(fmt::format("cpu:{}", fmt::join(some, ",")));
}

// Gives each process its device, and tells it of the others.
std::vector<jobs::JobOptions> shared_by(const jobs::JobOptions& job, const std::vector<engine::DeviceSpec>& devices) {
  std::vector<jobs::JobOptions> all;
  const auto others = static_cast<int>(devices.size()) - 1;
  for (const engine::DeviceSpec& device : devices) {
    jobs::JobOptions own = job;
    own.devices = {device};
    own.learners_per_device = {job.tuned ? job.tuned->min : 1};
    own.learners_elsewhere = others * job.tuned->max;
    all.push_back(std::move(own));
  }
  return all;
}

struct Change {
  std::uint64_t batch = 0;
  std::vector<int> to;  // by device of all processes
  bool operator==(const Change&) const = default;
};

// Each process of a search knows this at its end.
struct Found {
  std::vector<std::vector<Change>> changes;  // by rank
  std::vector<std::string> reasons;          // on rank 0
  std::vector<std::int64_t> samples;         // of gradients, by rank
};

struct Simulation {
  std::function<double(const std::vector<int>& learners)> rate;  // examples per second with these learners
  // Replaces the measured gradients of a process with so many learners.
  std::function<void(int own_learners, scheduler::Progress& progress)> gradients = {};
  std::function<void(World& world)> before_training = {};
  std::vector<std::optional<jobs::FirstGuess>> guesses = {};  // by rank
  std::uint64_t most_batches = 100'000;
  std::vector<std::string>* warnings = nullptr;  // gets those of the search, by rank
};

// One process of a search. It trains until the search of rank 0 has ended.
void search(World& world, jobs::JobOptions job, const Simulation& simulation, Found& found) {
  const auto rank = static_cast<std::size_t>(world.rank());
  const auto session = jobs::open_session(job, "", {}, jobs::Session::Input::kResident, &world);
  scheduler::Scheduler& scheduler = session->scheduler();
  std::vector<int> present = jobs::join(world, job.learners_per_device);
  int own = job.learners_per_device.front();
  jobs::SharedChanges changes(job, *session, world,
                              simulation.guesses.empty() ? std::nullopt : simulation.guesses[rank]);
  if (simulation.warnings != nullptr) simulation.warnings->at(rank) = changes.warning();
  if (simulation.before_training) simulation.before_training(world);
  jobs::Agreement agreement(world);
  jobs::Requests decided;
  bool has_ended = false;
  while (!decided.end_rounds()) {
    changes.follow(decided);
    if (const auto change = changes.due(scheduler.batches())) {
      has_ended = change->ends_search;
      present = jobs::join(world, change->to);
      scheduler.drain();
      session->resize(change->to);
      own = change->to.front();
      found.changes[rank].push_back({scheduler.batches(), present});
      if (world.rank() == 0) found.reasons.push_back(change->reason);
    }
    scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
    progress.add(scheduler.drain());
    found.samples[rank] += progress.gradient_samples;
    if (simulation.gradients) simulation.gradients(own, progress);
    const auto examples = static_cast<double>(total(present) * job.training.batch_size);
    changes.observe(progress, examples / simulation.rate(present));
    jobs::Requests requests;
    changes.add_to(requests);
    requests.time_is_over = world.rank() == 0 && has_ended;
    decided = agreement.after_iteration(requests, scheduler.iterations_apart());
    expect(scheduler.batches() < simulation.most_batches, "the search ends");
  }
}

Found search_over(const std::vector<jobs::JobOptions>& jobs, const Simulation& simulation) {
  Found found{.changes = std::vector<std::vector<Change>>(jobs.size()),
              .reasons = {},
              .samples = std::vector<std::int64_t>(jobs.size())};
  on_each_rank(static_cast<int>(jobs.size()),
               [&](World& world) { search(world, jobs[static_cast<std::size_t>(world.rank())], simulation, found); });
  return found;
}

jobs::JobOptions digits_job(const std::string& bounds) {
  return load("logistic-digits.txtpb", {"devices=cpu", "learners.per_device.auto={" + bounds + "}"});
}

}  // namespace

TEST_CASE("processes: alike devices are tuned together, wherever they are", "[processes]") {
  const jobs::TunedDevice small{.model = "Zen", .cores = 2, .ceiling = 4};
  const std::vector<jobs::TunedKind> kinds =
      jobs::find_kinds({small, {"Zen", 4, 8}, {"Zen", 2, 3}, {"Xeon", 2, 4}, {"Zen", 4, 9}}, 1);
  REQUIRE(kinds.size() == 3);
  CHECK(kinds[0].devices == std::vector<std::size_t>{0, 2});
  CHECK(kinds[1].devices == std::vector<std::size_t>{1, 4});
  CHECK(kinds[2].devices == std::vector<std::size_t>{3});
  CHECK(kinds[0].described.devices == 2);
  using Space = std::vector<autotuner::Configuration>;
  CHECK(kinds[0].described.space == Space{{1, 2}, {2, 1}});  // the ceiling of both is the lower one
  CHECK(kinds[1].described.space == Space{{1, 4}, {2, 2}, {4, 1}, {8, 1}});
  CHECK(kinds[2].described.space == Space{{1, 2}, {2, 1}, {4, 1}});
  CHECK(kinds[0].every == Space{{1, 2}, {2, 1}, {3, 1}});
}

TEST_CASE("processes: the search begins at the usual number of the smallest device, or without a guess",
          "[processes]") {
  const jobs::TunedDevice small{.model = "Zen", .cores = 2, .ceiling = 4, .usual = 2};
  const jobs::TunedDevice large{.model = "Zen", .cores = 8, .ceiling = 16, .usual = 8};
  CHECK(jobs::first_guess({large, small, large}).learners == std::vector<int>{2, 2, 2});
  CHECK(jobs::first_guess({large, {.model = "H100", .ceiling = 32}}).learners.empty());
}

TEST_CASE("processes: all change their learners at the same round, to the best number", "[processes]") {
  for (const int ranks : {2, 3}) {
    CAPTURE(ranks);
    const std::vector<engine::DeviceSpec> devices(static_cast<std::size_t>(ranks), cores(0));
    const auto rate = [&](const std::vector<int>& learners) {
      const int each = total(learners) / ranks;
      return each == 4 ? 2000.0 : 500.0 * std::min(each, 3);
    };
    const Found found = search_over(shared_by(digits_job("max: 8"), devices), {.rate = rate});
    REQUIRE_FALSE(found.changes[0].empty());
    for (const auto& changes : found.changes) CHECK(changes == found.changes[0]);
    for (const Change& change : found.changes[0]) {
      CHECK(change.to == std::vector<int>(static_cast<std::size_t>(ranks), change.to.front()));
    }
    CHECK(found.changes[0].back().to.front() == 4);
    for (const std::string& reason : found.reasons) CHECK_FALSE(reason.empty());
  }
}

TEST_CASE("processes: unlike machines get numbers of their own", "[processes]") {
  const auto jobs = shared_by(digits_job("max: 4"), {cores(0, 2), cores(1)});
  // The first process is best with one learner, the second with four.
  const auto rate = [](const std::vector<int>& learners) {
    return (learners[0] == 1 ? 400.0 : learners[0] == 2 ? 300.0 : 100.0) + 150.0 * learners[1];
  };
  const Found found = search_over(jobs, {.rate = rate});
  CHECK(found.changes[0] == found.changes[1]);
  CHECK(found.changes[0].back().to == std::vector<int>{1, 4});
}

TEST_CASE("processes: a search begins where `arbalest tune` has ended on each machine", "[processes]") {
  const auto jobs = shared_by(digits_job("max: 4"), {cores(0, 2), cores(1)});
  const auto rate = [](const std::vector<int>& learners) { return 1000.0 + total(learners); };
  const auto first_of = [&](std::vector<std::optional<jobs::FirstGuess>> guesses) {
    return search_over(jobs, {.rate = rate, .guesses = std::move(guesses)});
  };
  const jobs::FirstGuess two{.learners = {2}, .reason = "as remembered here"};
  const jobs::FirstGuess four{.learners = {4}, .reason = "as remembered there"};
  const Found both = first_of({two, four});
  CHECK(both.changes[0].front() == Change{0, {2, 4}});
  CHECK(both.reasons.front() == "as remembered here");
  // A guess for some of the devices is none.
  const Found one = first_of({two, std::nullopt});
  CHECK(one.changes[0].front().to != std::vector<int>{2, 4});
}

TEST_CASE("processes: for goodput, the gradients of rank 0 decide", "[processes]") {
  const std::vector<engine::DeviceSpec> devices = {cores(0), cores(0)};
  const auto rate = [](const std::vector<int>& learners) { return 10'000.0 * std::sqrt(total(learners)); };
  // |G|^2 is 1 and S is `scale` mini-batches. A single learner's two gradients count like those of two learners.
  const auto found_with = [&](double scale) {
    const auto gradients = [scale](int own_learners, scheduler::Progress& progress) {
      progress.gradient_samples = 1;
      progress.gradient_square_mean = 1.0 + scale;
      progress.mean_gradient_square = 1.0 + scale / std::max(2, own_learners);
    };
    const Found found = search_over(shared_by(digits_job("max: 4 objective: GOODPUT"), devices),
                                    {.rate = rate, .gradients = gradients});
    CHECK(found.changes[0] == found.changes[1]);
    return found.changes[0].back().to.front();
  };
  // Goodput relative to one learner is sqrt(k) (4 + 1) / (4 + k) for k learners in all: with 2, 4, 6 and 8 of them
  // 1.18, 1.25, 1.22 and 1.18.
  CHECK(found_with(4.0) == 2);
  CHECK(found_with(0.1) == 1);
  CHECK(found_with(1000.0) == 4);
}

// Only the files tell how many examples there are, so the job's reader could not lower the bound.
TEST_CASE("processes: a round of all learners is no longer than an epoch, if only the files tell its length",
          "[processes]") {
  jobs::JobOptions job = digits_job("");
  job.training.batch_size = 2500;  // 8 mini-batches an epoch
  job.data.training_examples.reset();
  job.tuned->max = 16;
  const auto rate = [](const std::vector<int>& learners) { return 1000.0 * total(learners); };
  const auto jobs = [&] { return shared_by(job, {cores(0), cores(0)}); };
  std::vector<std::string> warnings(2);
  const Found found = search_over(jobs(), {.rate = rate, .warnings = &warnings});
  CHECK(found.changes[0].back().to == std::vector<int>{4, 4});
  CHECK(warnings[1] == warnings[0]);
  CHECK_THAT(warnings[0], ContainsSubstring("there will be at most 4 learners of each device: a round of 10 learners "
                                            "with period 1 needs 10 mini-batches, but an epoch has 8"));
  job.tuned->max_is_given = true;
  CHECK_THROWS_WITH(search_over(jobs(), {.rate = rate}),
                    ContainsSubstring("learners.per_device.auto.max: a round of 32 learners with period 1"));
  job.tuned->min = 5;
  CHECK_THROWS_WITH(search_over(jobs(), {.rate = rate}),
                    ContainsSubstring("learners.per_device.auto.min: a round of 10 learners with period 1"));
}

TEST_CASE("processes: rank 0 measures gradients, even of a single learner", "[processes]") {
  const std::vector<engine::DeviceSpec> devices = {cores(0), cores(0)};
  const auto rate = [](const std::vector<int>& learners) { return 1000.0 / total(learners); };
  const Found found = search_over(shared_by(digits_job("max: 2 objective: GOODPUT"), devices), {.rate = rate});
  CHECK(found.changes[0].back().to == std::vector<int>{1, 1});
  CHECK(found.samples[0] > 0);
  CHECK(found.samples[1] == 0);
}

TEST_CASE("processes: if the memory of one does not suffice, all keep their learners", "[processes][memory]") {
  if (kSanitized) skip_test("a sanitizer goes on taking memory of its own, and gets none, either");
  jobs::JobOptions job = wide_job(4'000, "auto { max: 2 }");
  job.synchronization = sma::defaults_of(sma::Scheme::kLocalSgd);
  job.synchronization.period = 400;  // the search ends before, because an all-reduce would take memory, too
  std::vector<jobs::JobOptions> jobs = shared_by(job, {cores(0, 2), cores(1)});
  jobs[0].tuned->max = 1;  // so that only rank 1 prepares learners
  jobs[0].learners_elsewhere = 2;
  jobs[1].learners_elsewhere = 1;
  const std::int64_t learner = jobs::inspect(jobs[1]).learner_bytes;
  std::optional<AddressSpaceLimit> limit;
  const auto before_training = [&](World& world) {
    world.barrier();
    if (world.rank() == 0) limit.emplace(learner / 2);
    world.barrier();
  };
  const auto rate = [](const std::vector<int>& learners) { return 1000.0 * total(learners); };
  const Found found = search_over(jobs, {.rate = rate, .before_training = before_training});
  limit.reset();
  CHECK(found.changes[0] == found.changes[1]);
  for (const Change& change : found.changes[0]) CHECK(change.to == std::vector<int>{1, 1});
  const auto failed = std::ranges::count_if(found.reasons, [](const std::string& reason) {
    return reason.find("2 learners do not fit in memory: back to 1 learner") != std::string::npos &&
           reason.find("rank 1 on host here") != std::string::npos;
  });
  CHECK(failed == 1);
}

}  // namespace arbalest::tests
