// Completes a vector of which each process has its own shard.
#pragma once

#include "engine/process/world.h"
#include "engine/stream.h"
#include "sma/shards.h"

namespace arbalest::scheduler {

// Names the elements of the flat vectors that a vector has.
enum class VectorElements { kAll, kTrainable };

// Sets `whole` to the shards of all processes, each of which gives its own. Both are memory of the stream's device or
// of the host; `own` may be a part of `whole`. No work may be under way on them. Blocks. A call of World's operations.
void gather_shards(engine::process::World& world, engine::Stream& stream, const sma::Shards& shards,
                   VectorElements elements, const float* own, float* whole);

}  // namespace arbalest::scheduler
