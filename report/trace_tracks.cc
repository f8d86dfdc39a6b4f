#include "report/trace_tracks.h"

#include <algorithm>
#include <utility>

namespace arbalest::jobs {

TraceTrack::TraceTrack(TrackKind kind, std::string name, std::size_t capacity)
    : kind_(kind),
      name_(std::move(name)),
      capacity_(capacity),
      // the system provides pages when they are first written
      spans_(std::make_unique_for_overwrite<TraceSpan[]>(capacity)) {}

// There is only one writer, so the addition need not be atomic.
void TraceTrack::add(std::atomic<TraceTime>& sum, TraceTime time) noexcept {
  sum.store(sum.load(std::memory_order_relaxed) + time, std::memory_order_relaxed);
}

void TraceTrack::keep(const TraceSpan& span) noexcept {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == capacity_) {
    dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return;
  }
  spans_[count] = span;
  count_.store(count + 1, std::memory_order_release);
}

void TraceTrack::end(const char* name, SpanKind kind, bool in_evaluation, TraceTime now) noexcept {
  if (!in_evaluation) add(kind == SpanKind::kWait ? waiting_ : busy_, now - begin_);
  keep({begin_, now, name, kind});
}

TraceSums TraceTrack::sums() const noexcept {
  return {busy_.load(std::memory_order_relaxed), waiting_.load(std::memory_order_relaxed)};
}

TraceTracks::~TraceTracks() {
  for (std::atomic<Entry*>& place : places_) delete place.load();
}

TraceTrack* TraceTracks::find(const void* key, TrackKind kind, std::string_view name) {
  const std::size_t first = std::hash<const void*>()(key) >> 4U;  // addresses are multiples of 16
  const auto probe = [&](std::size_t& at) -> Entry* {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      at = (first + i) % kPlaces;
      Entry* entry = places_[at].load(std::memory_order_acquire);
      if (entry == nullptr || (entry->key == key && entry->track.name() == name)) return entry;
    }
    at = kPlaces;
    return nullptr;
  };
  std::size_t at = 0;
  if (Entry* entry = probe(at)) return &entry->track;
  const std::lock_guard lock(adding_);
  if (Entry* entry = probe(at)) return &entry->track;
  if (at == kPlaces) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  auto* entry = new Entry{key, TraceTrack(kind, std::string(name), spans_per_track_)};
  places_[at].store(entry, std::memory_order_release);
  return &entry->track;
}

void TraceTracks::for_each(const std::function<void(const TraceTrack&)>& visit) const {
  for (const std::atomic<Entry*>& place : places_) {
    if (const Entry* entry = place.load(std::memory_order_acquire)) visit(entry->track);
  }
}

}  // namespace arbalest::jobs
