#include "train/learners/shared_changes.h"

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "messages/failure.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;
using nlohmann::json;

namespace {

// Each process tells the others this about its devices.
json describe(const std::vector<TunedDevice>& devices, const std::optional<FirstGuess>& guess) {
  json described = {{"devices", json::array()}, {"learners", json::array()}};
  for (const TunedDevice& device : devices) {
    described["devices"].push_back({{"model", device.model},
                                    {"cores", device.cores},
                                    {"ceiling", device.ceiling},
                                    {"usual", device.usual},
                                    {"at_once", device.at_once}});
  }
  if (guess) described["learners"] = guess->learners;
  return described;
}

TunedDevice device_of(const json& described) {
  return {.model = described.at("model"),
          .cores = described.at("cores"),
          .ceiling = described.at("ceiling"),
          .usual = described.at("usual"),
          .at_once = described.at("at_once")};
}

}  // namespace

SharedChanges::SharedChanges(const JobOptions& job, Session& session, World& world,
                             const std::optional<FirstGuess>& guess)
    : session_(session),
      world_(world),
      own_devices_(job.devices.size()),
      present_(join(world, job.learners_per_device)),
      team_(job.team),
      preparation_(session) {
  make_search(job, guess);
  begin();
}

void SharedChanges::make_search(const JobOptions& job, const std::optional<FirstGuess>& guess) {
  const std::string own =
      describe(tuned_devices(job, session_.learner_ceiling(), session_.learners_at_once()), guess).dump();
  std::vector<TunedDevice> devices;
  FirstGuess first = guess.value_or(FirstGuess{});
  first.learners.clear();
  int rank = 0;
  for (const std::string& text : engine::process::all_gather(world_, own)) {
    const json described = json::parse(text);
    if (rank++ == world_.rank()) first_device_ = devices.size();
    for (const json& device : described.at("devices")) devices.push_back(device_of(device));
    for (const int learners : described.at("learners")) first.learners.push_back(learners);
  }
  const bool all_have_a_guess = first.learners.size() == devices.size();
  if (!all_have_a_guess) first = first_guess(devices);
  together(world_, [&] {
    warning_ = lower_ceilings(job, session_.training_order().batches_per_epoch(), devices);
    if (world_.rank() == 0) search_.emplace(job, std::move(devices), first, session_.training_order());
  });
}

// All processes have at least the minimum of the bounds, so the last of the numbers tried needs no more memory.
void SharedChanges::begin() {
  for (;;) {
    if (search_) chosen_ = search_->first();
    publish();
    const bool is_silent = world_.any_of(search_ && !search_->begins_silently() ? 1 : 0) == 0;
    if (told_->keeps(present_, team_) && is_silent) {
      told_.reset();
      return;
    }
    try {
      together(world_, [&] { session_.prepare(own_part(told_->to), told_->team); });
      is_due_ = true;
      return;
    } catch (const std::exception& error) {
      if (!is_shortage(error)) throw;
      if (search_) search_->first_does_not_fit(as_error(error).what());
    }
  }
}

std::vector<int> SharedChanges::own_part(const std::vector<int>& all) const {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(first_device_);
  return {first, first + static_cast<std::ptrdiff_t>(own_devices_)};
}

// All processes train equally many iterations, so rank 0 knows the tasks of all. As in TunedChanges, seconds of a
// preparation do not count.
void SharedChanges::observe(const scheduler::Progress& progress, double seconds) {
  const int own = total(own_part(present_));
  const int all = total(present_);
  const std::int64_t examples = progress.examples * all / own;
  if (search_) search_->learn(progress, own, examples);
  if (chosen_ || told_) return;
  if (std::exchange(releases_, false)) preparation_.release();
  if (search_) chosen_ = search_->add(progress.tasks * all / own, examples, seconds);
}

void SharedChanges::add_to(Requests& requests) {
  requests.has_change = chosen_.has_value();
  if (!told_ || !preparation_.is_done()) return;
  try {
    preparation_.take();
  } catch (const std::exception& error) {
    if (!is_shortage(error)) throw;
    shortage_ = std::current_exception();
  }
  requests.is_prepared = true;
  requests.lacks_memory = shortage_ != nullptr;
}

// Flags that were given for an earlier change have all come back before the next one is told: a change is told two
// iterations after rank 0 has chosen it, and flags take as long.
void SharedChanges::follow(const Requests& decided) {
  if (!told_) {
    if (!decided.has_change) return;
    publish();
    const LearnerChange own{.to = own_part(told_->to), .reason = {}, .evidence = {}, .team = told_->team};
    if (!own.keeps(own_part(present_), team_)) preparation_.start(own.to, own.team);
    return;
  }
  if (!decided.is_prepared) return;
  if (decided.lacks_memory) return give_up();
  is_due_ = true;
}

void SharedChanges::publish() {
  std::string message;
  if (search_) message = json({{"to", chosen_->to}, {"ends", chosen_->ends_search}, {"team", chosen_->team}}).dump();
  world_.broadcast(message);
  const json change = json::parse(message);
  told_ = search_ ? std::exchange(chosen_, std::nullopt)
                  : LearnerChange{change.at("to").get<std::vector<int>>(), "", std::nullopt, change.at("ends"),
                                  change.at("team")};
}

void SharedChanges::give_up() {
  std::string cause;
  try {
    together(world_, [&] {
      if (shortage_) std::rethrow_exception(std::exchange(shortage_, nullptr));
    });
  } catch (const SharedError& error) {
    cause = error.what();
  }
  preparation_.release();
  if (search_) chosen_ = search_->out_of_memory(present_, told_->to, cause);
  told_.reset();
}

std::optional<LearnerChange> SharedChanges::due(std::uint64_t /*batch*/) {
  if (!std::exchange(is_due_, false)) return std::nullopt;
  present_ = told_->to;
  if (told_->team > 0) team_ = told_->team;
  releases_ = told_->ends_search;
  LearnerChange change = *std::exchange(told_, std::nullopt);
  change.to = own_part(change.to);
  return change;
}

}  // namespace arbalest::jobs
