#include "engine/event.h"

#include "engine/stream.h"

namespace arbalest::engine {

bool Event::is_complete() const { return stream_ == nullptr || stream_->has_passed(position_); }

void Event::synchronize() const {
  if (stream_ != nullptr) stream_->synchronize(position_);
}

}  // namespace arbalest::engine
