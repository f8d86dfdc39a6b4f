#include "train/processes/shared_results.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "engine/process/packing.h"
#include "messages/failure.h"

namespace arbalest::jobs {

using engine::process::all_gather;
using engine::process::World;

namespace {

std::string_view bytes_of(const void* from, std::size_t size) { return {static_cast<const char*>(from), size}; }

}  // namespace

scheduler::Progress sum_over(World& world, const scheduler::Progress& own) {
  using Numbers = scheduler::ProgressNumbers;
  static_assert(std::is_trivially_copyable_v<Numbers>);
  if (world.size() == 1) return own;
  std::string message(bytes_of(static_cast<const Numbers*>(&own), sizeof(Numbers)));
  for (const auto& [staleness, pushes] : own.staleness) {
    for (const std::int64_t number : {staleness, pushes}) message += bytes_of(&number, sizeof number);
  }
  scheduler::Progress sum;
  for (const std::string& bytes : all_gather(world, message)) {
    scheduler::Progress part;
    std::memcpy(static_cast<Numbers*>(&part), bytes.data(), sizeof(Numbers));
    for (std::size_t at = sizeof(Numbers); at < bytes.size(); at += 2 * sizeof(std::int64_t)) {
      std::int64_t pair[2] = {};
      std::memcpy(pair, bytes.data() + at, sizeof pair);
      part.staleness[pair[0]] = pair[1];
    }
    sum.add(part);
  }
  return sum;
}

void throw_divergence(World& world, const std::optional<scheduler::Diverged>& own) {
  if (world.size() == 1) {
    if (own) throw *own;
    return;
  }
  if (world.any_of(own ? 1 : 0) == 0) return;
  const std::vector<std::string> texts = all_gather(world, own ? own->what() : std::string());
  const std::vector<double> losses = all_gather(world, own ? own->loss() : 0.0);
  std::size_t rank = 0;
  while (texts[rank].empty()) ++rank;
  throw scheduler::Diverged(fmt::format("{}: {}", world.place(static_cast<int>(rank)), texts[rank]), losses[rank]);
}

std::vector<int> join(World& world, const std::vector<int>& own) {
  std::vector<int> all;
  for (const std::string& bytes : all_gather(world, bytes_of(own.data(), own.size() * sizeof(int)))) {
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(int));
    if (!bytes.empty()) std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

std::vector<std::string> warnings_of_all(World& world, const std::vector<std::string>& own) {
  std::vector<std::string> all = own;
  const std::vector<std::string> parts = all_gather(world, engine::process::pack(own));
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    for (const std::string& text : engine::process::unpack(parts[rank])) {
      if (std::ranges::find(all, text) == all.end()) all.push_back(fmt::format("rank {}: {}", rank, text));
    }
  }
  return all;
}

void together(World& world, const std::function<void()>& step) {
  if (world.size() == 1) return step();
  std::optional<engine::Error> failure;
  try {
    step();
  } catch (const std::exception& error) {
    failure = as_error(error);
    if (failure->kind() == engine::ErrorKind::kPeer) throw;  // there is nobody to agree with
  }
  if (world.any_of(failure ? 1 : 0) == 0) return;
  // The first byte is the kind.
  const std::string own = failure ? static_cast<char>(failure->kind()) + std::string(failure->what()) : std::string();
  const std::vector<std::string> failures = all_gather(world, own);
  std::size_t rank = 0;
  while (failures[rank].empty()) ++rank;
  const auto kind = static_cast<engine::ErrorKind>(failures[rank].front());
  const std::string text = failures[rank].substr(1);
  throw SharedError(kind, rank == 0 ? text : fmt::format("{}: {}", world.place(static_cast<int>(rank)), text));
}

}  // namespace arbalest::jobs
