#include "checkpoint/best_model.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/saved_run.h"
#include "engine/base/error.h"
#include "saved_model/atomic_file.h"
#include "saved_model/safetensors.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;

namespace {

using Warn = std::function<void(const std::string&)>;

constexpr const char* kScore = "score";
constexpr const char* kBatches = "mini_batches";

template <typename Number>
std::optional<Number> number_in(const std::map<std::string, std::string>& metadata, const char* name) {
  const auto found = metadata.find(name);
  if (found == metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<BestModel> best_model_of(const fs::path& file) {
  try {
    const auto metadata = read_safetensors_metadata(file);
    const auto score = number_in<double>(metadata, kScore);
    const auto batches = number_in<std::uint64_t>(metadata, kBatches);
    if (score && batches) return BestModel{*score, *batches};
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kCheckpoint) throw;  // the file is missing or damaged
  }
  return std::nullopt;
}

Metadata with_point(const BestModel& best, const Metadata& metadata) {
  Metadata all = metadata;
  all["format"] = "arbalest";
  all[kBatches] = std::to_string(best.batches);
  all[kScore] = fmt::format("{}", best.score);
  return all;
}

// A model that best.safetensors can be made of.
struct Source {
  BestModel model;
  std::function<scheduler::Tensors()> read;
};

// The checkpoints until here whose model was evaluated.
void add_checkpoints(const fs::path& checkpoints, std::uint64_t batches, std::vector<Source>& sources) {
  for (const Checkpoint& checkpoint : list_checkpoints(checkpoints)) {
    if (checkpoint.batches > batches) continue;
    const std::optional<double> score = score_of(checkpoint);
    if (!score) continue;
    sources.push_back(
        {{*score, checkpoint.batches}, [path = checkpoint.path] { return read_saved_model(open_checkpoint(path)); }});
  }
}

// Adds a file with a best model of a run.
void add_best(const fs::path& file, const BestModelNeeds& needs, std::vector<Source>& sources) {
  const std::optional<BestModel> best = best_model_of(file);
  if (!best || (best->batches > needs.batches && best != needs.best)) return;
  const std::string sha256 = best == needs.best ? needs.best->sha256 : "";
  sources.push_back({*best, [file, sha256] { return read_safetensors(file, sha256); }});
}

std::vector<Source> sources_of(const BestModelNeeds& needs) {
  std::vector<Source> sources;
  add_best(needs.run_directory / kEarlierBest, needs, sources);
  add_checkpoints(checkpoints_of(needs.run_directory), needs.batches, sources);
  if (needs.checkpoint.empty()) return sources;
  const fs::path around = needs.checkpoint.parent_path();
  std::error_code error;
  if (fs::equivalent(around, checkpoints_of(needs.run_directory), error)) return sources;
  add_checkpoints(around, needs.batches, sources);
  const fs::path run = around.parent_path();
  add_best(run / kBestModel, needs, sources);
  add_best(run / kEarlierBest, needs, sources);
  return sources;
}

std::string text_of(const BestModel& model) {
  return fmt::format("mini-batch {} (score {:.6g})", model.batches, model.score);
}

void set_file_aside(const fs::path& file, const char* ending, const char* reason, const Warn& warn) {
  try {
    const fs::path aside = set_aside(file, ending);
    warn(fmt::format("'{}' is now '{}': {}", file.string(), aside.filename().string(), reason));
  } catch (const engine::Error& error) {
    warn(fmt::format("'{}' should be set aside ({}), but it cannot be renamed: {}", file.string(), reason,
                     error.what()));
  }
}

// Returns whether best.safetensors is now the model of `source`, which `taken` then is.
bool write_from(const Source& source, const BestModelNeeds& needs, const Warn& warn, BestModel& taken) {
  try {
    taken = source.model;
    taken.sha256 = write_best_model(needs.run_directory, source.read(), source.model, needs.metadata);
    return true;
  } catch (const engine::Error& error) {
    warn(fmt::format("the best model before this point, of {}, cannot be kept: {}", text_of(source.model),
                     error.what()));
    return false;
  }
}

}  // namespace

std::string write_best_model(const fs::path& run_directory, const scheduler::Tensors& model, const BestModel& best,
                             const Metadata& metadata) {
  return write_safetensors(run_directory / kBestModel, model, with_point(best, metadata));
}

std::string best_model_sha256(const scheduler::Tensors& model, const BestModel& best, const Metadata& metadata) {
  Sha256 hash;
  put_safetensors(model, with_point(best, metadata), [&](std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.finish();
}

std::optional<BestModel> best_model_in(const fs::path& run_directory) {
  return best_model_of(run_directory / kBestModel);
}

void keep_earlier_best(const fs::path& run_directory) {
  const fs::path file = run_directory / kBestModel;
  const fs::path earlier = run_directory / kEarlierBest;
  forget_earlier_best(run_directory);
  std::error_code error;
  fs::create_hard_link(file, earlier, error);   // best.safetensors is there all the time
  if (error) fs::rename(file, earlier, error);  // the file system has no hard links
  if (error) fail_write(earlier, error.value());
}

void forget_earlier_best(const fs::path& run_directory) {
  std::error_code error;
  fs::remove(run_directory / kEarlierBest, error);
  if (error) fail_write(run_directory / kEarlierBest, error.value());
}

namespace {

std::optional<BestModel> find_best_model(const BestModelNeeds& needs, const Warn& warn) {
  const fs::path file = needs.run_directory / kBestModel;
  const bool is_kept = needs.best && best_model_in(needs.run_directory) == needs.best;
  const bool is_whole = !is_kept || needs.best->sha256.empty() || sha256_of(file) == needs.best->sha256;
  if (is_kept && is_whole && needs.keeps) return needs.best;
  std::error_code error;
  if (!is_whole) {
    set_file_aside(file, "damaged", "its SHA-256 is not the one that the checkpoint names", warn);
  } else if (fs::exists(fs::symlink_status(file, error))) {
    set_file_aside(file, "superseded",
                   is_kept ? "the job keeps no best model any more (checkpoint.keep_best or keep_last is 0)"
                           : "it was not the best model at the point that the run goes on from",
                   warn);
  }
  const bool is_new = needs.checkpoint.empty() && !needs.best;
  if (!needs.keeps || is_new) return std::nullopt;
  std::vector<Source> sources = sources_of(needs);
  std::ranges::stable_sort(sources, [&](const Source& a, const Source& b) {
    if ((a.model == needs.best) != (b.model == needs.best)) return a.model == needs.best;
    return needs.order.is_better(a.model.score, b.model.score);
  });
  std::optional<BestModel> taken;
  for (const Source& source : sources) {
    BestModel written;
    if (!write_from(source, needs, warn, written)) continue;
    taken = written;
    break;
  }
  if (!needs.best || taken == needs.best) return taken;
  warn(fmt::format("no checkpoint holds the run's best model, that of {}; {} {}", text_of(*needs.best), kBestModel,
                   taken ? fmt::format("is now the best model among the checkpoints, that of {}", text_of(*taken))
                         : "will be written at the end of the next epoch"));
  return taken;
}

}  // namespace

std::optional<BestModel> take_over_best_model(const BestModelNeeds& needs, const Warn& warn) {
  const std::optional<BestModel> taken = find_best_model(needs, warn);
  if (!needs.best || taken == needs.best || !needs.keeps) forget_earlier_best(needs.run_directory);
  return taken;
}

}  // namespace arbalest::jobs
