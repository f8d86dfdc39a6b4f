// The calls by which a host thread waits for a device. Whoever trains must not wait, so the rules of the source tree
// (tests/architecture) list the files that may include this one: they set something up, read a result, or belong to the
// scheduler, which waits for the oldest of the strides that it has enqueued.
#pragma once

#include "engine/event.h"
#include "engine/stream.h"

namespace arbalest::engine {

// Blocks the calling thread until the event has passed. Throws the first error of the work before it.
inline void wait_for(const Event& event) { event.synchronize(); }

// Does so for all work that the stream has now.
inline void wait_for(Stream& stream) { wait_for(stream.record()); }

}  // namespace arbalest::engine
