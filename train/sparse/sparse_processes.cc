#include "train/sparse/sparse_processes.h"

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/process/packing.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

using engine::process::World;

scheduler::ProximalShare share_of_learners(World& world, int own_learners) {
  const std::vector<int> learners = join(world, {own_learners});
  return {.world = &world,
          .first = std::accumulate(learners.begin(), learners.begin() + world.rank(), 0),
          .workers = std::reduce(learners.begin(), learners.end())};
}

void require_same_rows(World& world, const std::string& digest) {
  if (world.size() == 1) return;
  const std::vector<int> others = world.agree(digest);
  if (others.empty()) return;
  throw SharedError(engine::ErrorKind::kData,
                    fmt::format("{} has other training rows than {}: copy the same file to all hosts, or name a "
                                "directory that all share (--data-root)",
                                world.place(others.front()), world.place(0)));
}

Scores test_on_rank_0(World& world, const SparseMethod& method) {
  if (world.size() == 1) return method.test().scores;
  Scores scores;
  std::string message;
  if (world.rank() == 0) {
    scores = method.test().scores;
    std::vector<std::string> parts;  // of each score its name and the bytes of its value, if it has one
    for (const Score& score : scores) {
      parts.push_back(score.name);
      const double value = score.value.value_or(0.0);
      parts.emplace_back(reinterpret_cast<const char*>(&value), score.value ? sizeof value : 0);
    }
    message = engine::process::pack(parts);
  }
  world.broadcast(message);
  if (world.rank() == 0) return scores;
  const std::vector<std::string> parts = engine::process::unpack(message);
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    std::optional<double> value;
    if (!parts[i + 1].empty()) std::memcpy(&value.emplace(), parts[i + 1].data(), sizeof(double));
    scores.set(parts[i], value);
  }
  return scores;
}

}  // namespace arbalest::jobs
