#include "checkpoint/checkpoint_saver.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint_store.h"
#include "messages/failure.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

// Runs `write`. Sets `failure` to its error, if it has one.
void attempt(std::string& failure, const std::function<void()>& write) {
  try {
    write();
  } catch (const std::exception& error) {
    failure = as_error(error).what();
  }
}

}  // namespace

fs::path checkpoints_of(const fs::path& run_directory) { return run_directory / "checkpoints"; }

bool has_checkpoints(const fs::path& run_directory) { return !list_checkpoints(checkpoints_of(run_directory)).empty(); }

bool is_rollback_point_due(const CheckpointOptions& options, std::uint64_t batches, std::uint64_t newest,
                           std::optional<int> ended_epochs) {
  if (batches == newest) return false;
  if (options.every_batches) return batches / *options.every_batches > newest / *options.every_batches;
  return ended_epochs && *ended_epochs % options.every_epochs.value_or(1) == 0;
}

CheckpointSaver::CheckpointSaver(const fs::path& run_directory, const CheckpointOptions& options, ScoreOrder order,
                                 std::uint64_t from_batches, double from_seconds, std::optional<BestModel> best,
                                 bool keeps_points)
    : run_directory_(run_directory),
      checkpoints_(checkpoints_of(run_directory)),
      options_(options),
      order_(order),
      keeps_points_(keeps_points),
      last_batches_(from_batches),
      last_seconds_(from_seconds),
      best_(best),
      named_(best) {
  sweep_partial(checkpoints_);
}

CheckpointSaver::~CheckpointSaver() {
  begun_.reset();  // its thread ends
  if (writing_.valid()) writing_.wait();
}

bool CheckpointSaver::is_due(std::uint64_t batches, double seconds, std::optional<int> ended_epochs) const {
  if (!options_.are_on() || batches == last_batches_) return false;
  // An epoch ends once, so its checkpoint waits for the save under way. Other checkpoints come after that.
  if (options_.every_epochs) return ended_epochs && *ended_epochs % *options_.every_epochs == 0;
  if (is_writing()) return false;
  if (options_.every_batches) return batches / *options_.every_batches > last_batches_ / *options_.every_batches;
  constexpr double kSecondsPerMinute = 60.0;
  return seconds - last_seconds_ >= options_.every_minutes.value_or(0.0) * kSecondsPerMinute;
}

bool CheckpointSaver::holds(std::uint64_t batches) const {
  std::error_code error;
  return fs::exists(checkpoints_ / checkpoint_name(batches) / kManifestFile, error);
}

bool CheckpointSaver::is_best(double score) const {
  const std::optional<BestModel> to_beat = best();
  return options_.keep_best > 0 && (!to_beat || order_.is_better(score, to_beat->score));
}

void CheckpointSaver::skip(std::uint64_t batches, double seconds) {
  last_batches_ = batches;
  last_seconds_ = seconds;
}

std::unique_ptr<CheckpointWriter> CheckpointSaver::begin(std::uint64_t batches, double seconds) {
  collect();
  skip(batches, seconds);
  SaveResult result{.batches = batches, .is_checkpoint = true, .path = {}, .failure = {}};
  std::unique_ptr<CheckpointWriter> writer;
  attempt(result.failure, [&] {
    auto begun = std::make_unique<CheckpointWriter>(checkpoints_, batches);
    std::promise<std::function<SaveResult()>> work;
    try {
      writing_ = std::async(std::launch::async, [given = work.get_future()]() mutable { return given.get()(); });
    } catch (const std::system_error& error) {
      engine::fail(engine::ErrorKind::kOutOfMemory,
                   "cannot start a thread to write the checkpoint ({}); look at 'ulimit -u' and at pids.max",
                   error.code().message());
    }
    begun_ = std::move(work);
    writer = std::move(begun);
  });
  if (!writer) keep(std::move(result));
  return writer;
}

scheduler::TrainingState CheckpointSaver::take_memory() {
  ARBALEST_CHECK(!is_writing());
  return written_ ? std::move(std::exchange(written_, nullptr)->training) : scheduler::TrainingState{};
}

// The state is large, so the closures share it instead of copying it.
void CheckpointSaver::save(SavedRun saved, double seconds, bool is_best, std::unique_ptr<CheckpointWriter> writer,
                           AddFiles add_files) {
  if (!begun_) collect();
  skip(saved.training.batches, seconds);
  if (is_best) best_written_ = saved.run.best_model;
  written_ = std::make_shared<SavedRun>(std::move(saved));
  start(last_batches_,
        [this, is_best, add_files = std::move(add_files), shared = written_,
         begun = std::make_shared<std::unique_ptr<CheckpointWriter>>(std::move(writer))](SaveResult& result) {
          result.is_checkpoint = true;
          if (is_best) {
            BestModel& best = shared->run.best_model.value();
            best.sha256 = best_model_sha256(shared->evaluated_model(), best, shared->metadata);
          }
          attempt(result.failure, [&] { result.path = write_run(*shared, std::move(*begun), add_files); });
          // The checkpoint holds the best model, too: if this ends here, a resumed run makes the file of it.
          if (is_best) write_best(shared->evaluated_model(), shared->run.best_model.value(), shared->metadata, result);
          if (result.path.empty()) return;
          result.named = shared->run.best_model;
          attempt(result.failure, [&] {
            if (best_model_in(run_directory_) == result.named) forget_earlier_best(run_directory_);
            retain(result);
          });
        });
}

// Other processes write their files in any case, and wait for this one to take them.
fs::path CheckpointSaver::write_run(const SavedRun& saved, std::unique_ptr<CheckpointWriter> writer,
                                    const AddFiles& add_files) const {
  std::exception_ptr failure;
  try {
    if (!writer) writer = std::make_unique<CheckpointWriter>(checkpoints_, saved.training.batches);
    add_saved_run(*writer, saved);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  if (add_files) add_files(*writer, failure != nullptr);
  if (failure) std::rethrow_exception(failure);
  return writer->commit();
}

void CheckpointSaver::save_best(scheduler::Tensors model, const BestModel& best, Metadata metadata) {
  collect();
  best_written_ = best;
  start(best.batches, [this, best, metadata = std::move(metadata),
                       shared = std::make_shared<const scheduler::Tensors>(std::move(model))](SaveResult& result) {
    write_best(*shared, best, metadata, result);
  });
}

void CheckpointSaver::write_best(const scheduler::Tensors& model, const BestModel& best, const Metadata& metadata,
                                 SaveResult& result) const {
  std::string failure;
  attempt(failure, [&] {
    if (named_ && best_model_in(run_directory_) == named_) keep_earlier_best(run_directory_);
    BestModel written = best;
    written.sha256 = write_best_model(run_directory_, model, best, metadata);
    result.best = written;
  });
  if (failure.empty()) return;
  result.warnings.push_back(fmt::format("the best model so far, of mini-batch {}, is not in {}: {}; the run goes on",
                                        best.batches, kBestModel, failure));
}

void CheckpointSaver::start(std::uint64_t batches, const std::function<void(SaveResult&)>& write) {
  const auto task = [batches, write] {
    SaveResult result{.batches = batches, .path = {}, .failure = {}};
    attempt(result.failure, [&] { write(result); });
    return result;
  };
  if (begun_) return std::exchange(begun_, std::nullopt)->set_value(task);
  try {
    writing_ = std::async(std::launch::async, task);
  } catch (const std::system_error&) {  // no thread is left
    keep(task());
  }
}

bool CheckpointSaver::is_writing() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void CheckpointSaver::collect() {
  if (writing_.valid()) keep(writing_.get());
}

void CheckpointSaver::keep(SaveResult result) {
  if (result.best) best_ = result.best;
  if (!result.path.empty()) named_ = result.named;
  best_written_.reset();
  results_.push_back(std::move(result));
}

std::optional<SaveResult> CheckpointSaver::take_result(bool wait) {
  if (wait || !is_writing()) collect();
  // The end of save_best() is worth telling only if it failed.
  std::erase_if(results_, [](const SaveResult& result) {
    return result.path.empty() && result.failure.empty() && result.warnings.empty();
  });
  if (results_.empty()) return std::nullopt;
  SaveResult first = std::move(results_.front());
  results_.erase(results_.begin());
  return first;
}

// Deletes the checkpoints that are neither among the newest nor among the best, nor among the newest points.
void CheckpointSaver::retain(SaveResult& result) {
  std::vector<std::pair<double, std::uint64_t>> scored;
  std::vector<std::uint64_t> points;
  for (const Checkpoint& checkpoint : list_checkpoints(checkpoints_)) {
    const std::optional<double> score = score_of(checkpoint);
    if (score) scored.emplace_back(*score, checkpoint.batches);
    if (keeps_points_ && is_rollback_point(checkpoint)) points.push_back(checkpoint.batches);
  }
  std::ranges::stable_sort(scored, [this](const auto& a, const auto& b) { return order_.is_better(a.first, b.first); });
  scored.resize(std::min(scored.size(), static_cast<std::size_t>(options_.keep_best)));
  const std::size_t older = points.size() - std::min(points.size(), static_cast<std::size_t>(options_.keep_last));
  std::vector<std::uint64_t> kept(points.begin() + static_cast<std::ptrdiff_t>(older), points.end());
  for (const auto& [score, batches] : scored) kept.push_back(batches);
  jobs::retain(checkpoints_, options_.keep_last, kept, [&](const std::string& text) {
    if (told_.insert(text).second) result.warnings.push_back(text);
  });
}

}  // namespace arbalest::jobs
