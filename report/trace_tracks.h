// Records spans of time on many threads without locks: one track per stream or thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

namespace arbalest::jobs {

// Nanoseconds since the trace began.
using TraceTime = std::int64_t;

// The kind of stream or thread that a track records.
enum class TrackKind {
  kLearner,    // the stream of a learner
  kAveraging,  // the stream of a central model
  kInput,      // fills mini-batches, or copies data to a device
  kInputWait,  // training waits for mini-batches
  kEvaluationInputWait
};

enum class SpanKind { kTraining, kEvaluation, kAveraging, kInput, kWait };

struct TraceSpan {
  TraceTime begin = 0;
  TraceTime end = 0;
  const char* name = "";
  SpanKind kind = SpanKind::kTraining;
};

// Sums over all spans of a track outside of evaluation, including the spans that were not kept.
struct TraceSums {
  TraceTime busy = 0;
  TraceTime waiting = 0;
};

// A track is written by one thread at a time and read by any. Its spans do not overlap.
class TraceTrack {
 public:
  TraceTrack(TrackKind kind, std::string name, std::size_t capacity);

  TrackKind kind() const noexcept { return kind_; }
  const std::string& name() const noexcept { return name_; }

  void begin(TraceTime now) noexcept { begin_ = now; }
  // `name` must outlive the track. Spans within evaluation are kept, but not added to the sums.
  void end(const char* name, SpanKind kind, bool in_evaluation, TraceTime now) noexcept;

  // The first spans; later ones are only counted if there is no room.
  std::span<const TraceSpan> spans() const noexcept { return {spans_.get(), count_.load(std::memory_order_acquire)}; }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  TraceSums sums() const noexcept;

 private:
  void add(std::atomic<TraceTime>& sum, TraceTime time) noexcept;
  void keep(const TraceSpan& span) noexcept;

  const TrackKind kind_;
  const std::string name_;
  const std::size_t capacity_;
  const std::unique_ptr<TraceSpan[]> spans_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<TraceTime> busy_{0};
  std::atomic<TraceTime> waiting_{0};
  TraceTime begin_ = 0;
};

class TraceTracks {
 public:
  explicit TraceTracks(std::size_t spans_per_track) : spans_per_track_(spans_per_track) {}
  ~TraceTracks();
  TraceTracks(const TraceTracks&) = delete;
  TraceTracks& operator=(const TraceTracks&) = delete;

  // Returns the track of `key` and `name`, and creates (allocates) it if missing. A destroyed stream's address may
  // return as the key of another stream, which has another name. Returns null if there are too many tracks.
  TraceTrack* find(const void* key, TrackKind kind, std::string_view name);
  void for_each(const std::function<void(const TraceTrack&)>& visit) const;
  // Number of calls of find() that returned null.
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    const void* key;
    TraceTrack track;
  };
  static constexpr std::size_t kPlaces = 1024;  // learners of all resizes of a run; a power of two

  const std::size_t spans_per_track_;
  std::array<std::atomic<Entry*>, kPlaces> places_{};  // by hash of the key, or the next free place
  std::mutex adding_;
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace arbalest::jobs
