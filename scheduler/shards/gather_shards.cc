#include "scheduler/shards/gather_shards.h"

#include <string>
#include <vector>

#include "engine/process/all_gather.h"
#include "engine/waiting.h"

namespace arbalest::scheduler {

void gather_shards(engine::process::World& world, engine::Stream& stream, const sma::Shards& shards,
                   VectorElements elements, const float* own, float* whole) {
  const auto shard_of = [&](int process) {
    return elements == VectorElements::kAll ? shards.of(process) : shards.trainable_of(process);
  };
  std::string bytes(static_cast<std::size_t>(shard_of(world.rank()).elements()) * sizeof(float), '\0');
  stream.copy(bytes.data(), own, bytes.size(), "copy of the shard");
  engine::wait_for(stream);
  const std::vector<std::string> parts = engine::process::all_gather(world, bytes);
  for (int process = 0; process < world.size(); ++process) {
    const std::string& part = parts[static_cast<std::size_t>(process)];
    if (!part.empty()) stream.copy(whole + shard_of(process).begin, part.data(), part.size(), "copy of a shard");
  }
  engine::wait_for(stream);
}

}  // namespace arbalest::scheduler
