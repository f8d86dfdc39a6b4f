#include "train/processes/shared_save.h"

#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "checkpoint/learner_files.h"
#include "checkpoint/transfer/file_transfer.h"
#include "engine/base/error.h"
#include "engine/process/packing.h"
#include "messages/failure.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::Error;
using engine::ErrorKind;
using engine::process::World;
using scheduler::TrainingState;

namespace {

std::string pack_steps(const TrainingState& training) {
  std::string bytes;
  for (const scheduler::LearnerState& learner : training.learners) {
    if (learner.is_here()) bytes.append(reinterpret_cast<const char*>(&learner.steps), sizeof learner.steps);
  }
  return bytes;
}

// Sets the steps of all learners. Returns the number of learners of each rank.
std::vector<std::size_t> unpack_steps(const std::vector<std::string>& of_ranks, TrainingState& training) {
  std::vector<std::size_t> counts;
  std::size_t learner = 0;
  for (const std::string& bytes : of_ranks) {
    counts.push_back(bytes.size() / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < counts.back(); ++i, ++learner) {
      std::memcpy(&training.learners.at(learner).steps, bytes.data() + i * sizeof(std::uint64_t),
                  sizeof(std::uint64_t));
    }
  }
  return counts;
}

// Calls `step` with the number of each learner whose vectors are here.
template <typename Step>
void for_own_learners(const TrainingState& training, const Step& step) {
  for (std::size_t j = 0; j < training.learners.size(); ++j) {
    if (training.learners[j].is_here()) step(j);
  }
}

}  // namespace

struct SharedSave::Wanted {
  World* world;
  std::vector<bool> sees;           // by rank
  std::vector<std::size_t> counts;  // of learners, by rank
  std::shared_future<std::vector<Part>> parts;
};

SharedSave::SharedSave(World& world, const fs::path& run_directory)
    : world_(world), checkpoints_(checkpoints_of(run_directory)), view_(look_at(world, run_directory)) {}

SharedSave::~SharedSave() = default;  // the future of a thread waits for it

SharedSave::Part SharedSave::write(const fs::path& directory, const TrainingState& training) {
  Part part;
  try {
    for_own_learners(training, [&](std::size_t j) {
      part.files.push_back(write_checkpoint_file(directory, learner_file(j),
                                                 [&](const Write& write) { put_learner(training, j, write); }));
    });
  } catch (const std::exception& error) {
    part.failure = as_error(error);
  }
  return part;
}

// Rank 0 expects a file for each learner. It gets an error in the place of a file that fails.
SharedSave::Part SharedSave::send(World& world, const TrainingState& training) {
  Part part;
  for_own_learners(training, [&](std::size_t j) {
    try {
      send_file(world, 0, [&](const Write& write) { put_learner(training, j, write); });
    } catch (const std::exception& error) {
      part.failure = as_error(error);
    }
  });
  return part;
}

void SharedSave::start(TrainingState training, const std::string& name) {
  const auto state = std::make_shared<const TrainingState>(std::move(training));
  const bool sees = view_.sees[static_cast<std::size_t>(world_.rank())];
  const auto task = [state, sees, directory = checkpoints_ / name, world = &world_] {
    return sees ? write(directory, *state) : send(*world, *state);
  };
  try {
    writing_ = std::async(std::launch::async, task);
  } catch (const std::system_error&) {  // no thread is left
    const World::FileWork work(world_);
    std::promise<Part> done;
    done.set_value(task());
    writing_ = done.get_future();
  }
}

std::optional<AddFiles> SharedSave::begin(TrainingState& training, CheckpointWriter* writer) {
  std::string name = writer == nullptr ? "" : writer->directory().filename().string();
  world_.broadcast(name);
  if (name.empty()) return std::nullopt;
  const std::vector<std::string> steps = world_.gather(pack_steps(training));
  has_begun_ = true;
  if (world_.rank() != 0) {
    start(std::move(training), name);
    return AddFiles();
  }
  parts_.emplace();
  const Wanted wanted{&world_, view_.sees, unpack_steps(steps, training), parts_->get_future().share()};
  return [wanted](CheckpointWriter& of, bool is_lost) { add_files(wanted, of, is_lost); };
}

bool SharedSave::is_writing() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void SharedSave::finish() {
  if (!std::exchange(has_begun_, false)) return;
  std::string own;
  if (writing_.valid()) {
    const World::FileWork work(world_);
    own = pack(writing_.get());
  }
  const std::vector<std::string> all = world_.gather(own);
  if (world_.rank() != 0) return;
  std::vector<Part> parts(1);
  for (std::size_t rank = 1; rank < all.size(); ++rank) parts.push_back(unpack(all[rank]));
  parts_->set_value(std::move(parts));
}

// Runs on the thread of rank 0. Even if the checkpoint is lost, it takes the files that are sent, and waits for those
// that others write, because their directory must stay until then.
void SharedSave::add_files(const Wanted& wanted, CheckpointWriter& writer, bool is_lost) {
  std::exception_ptr failure;
  std::size_t learner = wanted.counts[0];
  for (std::size_t rank = 1; rank < wanted.sees.size(); ++rank) {
    for (std::size_t i = 0; i < wanted.counts[rank]; ++i, ++learner) {
      if (wanted.sees[rank]) continue;
      IncomingFile file(*wanted.world, static_cast<int>(rank));
      if (is_lost) continue;
      try {
        writer.add(learner_file(learner), [&](const Write& write) {
          for (auto piece = file.next(); !piece.empty(); piece = file.next()) write(piece);
        });
      } catch (const std::exception&) {
        failure = std::current_exception();
        is_lost = true;
      }
    }
  }
  const std::vector<Part>& parts = wanted.parts.get();
  if (failure) std::rethrow_exception(failure);
  for (std::size_t rank = 1; rank < parts.size() && !is_lost; ++rank) {
    const std::string place = wanted.world->place(static_cast<int>(rank));
    if (parts[rank].failure) {
      throw Error(parts[rank].failure->kind(), fmt::format("{}: {}", place, parts[rank].failure->what()));
    }
    for (const ManifestEntry& entry : parts[rank].files) {
      try {
        writer.add_written(entry);
      } catch (const DamagedCheckpoint& difference) {
        engine::fail(ErrorKind::kInternal, "rank 0 does not see what {} has written to the same directory: {}", place,
                     difference.what());
      }
    }
  }
}

std::string SharedSave::pack(const Part& part) {
  std::vector<std::string> words;
  if (part.failure) {
    words = {std::string(1, static_cast<char>(part.failure->kind())), part.failure->what()};
  } else {
    words = {"", ""};
    for (const ManifestEntry& file : part.files) {
      words.insert(words.end(), {file.name, std::to_string(file.size), file.xxh3_128});
    }
  }
  return engine::process::pack(words);
}

SharedSave::Part SharedSave::unpack(const std::string& bytes) {
  const std::vector<std::string> words = engine::process::unpack(bytes);
  Part part;
  if (!words.at(1).empty()) part.failure.emplace(static_cast<ErrorKind>(words[0].at(0)), words[1]);
  for (std::size_t i = 2; i + 2 < words.size(); i += 3) {
    part.files.push_back({words[i], std::stoull(words[i + 1]), words[i + 2]});
  }
  return part;
}

}  // namespace arbalest::jobs
