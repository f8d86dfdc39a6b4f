// The calls by which a host thread waits for a device; only Completions (engine/host/completions.h) waits, too, for the
// first of several streams. Enqueueing must not wait, so the rules of the source tree (tests/architecture) list the
// files that may include one of the two: they set something up, read a result, or belong to the scheduler, which waits
// for the oldest of the iterations that it has enqueued.
#pragma once

#include "engine/collective.h"
#include "engine/event.h"
#include "engine/stream.h"

namespace arbalest::engine {

// Blocks the calling thread until the event has passed. Throws the first error of the work before it.
inline void wait_for(const Event& event) { event.synchronize(); }

// Does so for all work that the stream has now.
inline void wait_for(Stream& stream) { wait_for(stream.record()); }

// Does so for an event that may follow an all-reduce: Collective::wait.
inline void wait_for(Collective& collective, const Event& event) { collective.wait(event); }

// Blocks the calling thread until the stream is idle, whatever has failed: Stream::drain.
inline void drain(Stream& stream) noexcept { stream.drain(); }

}  // namespace arbalest::engine
