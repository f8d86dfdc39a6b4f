// Tracks of a trace: their spans, counts and sums.
#include <string>
#include <thread>
#include <vector>

#include "report/trace_tracks.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {
namespace {

void add(TraceTrack& track, SpanKind kind, TraceTime begin, TraceTime end, bool in_evaluation = false) {
  track.begin(begin);
  track.end("name", kind, in_evaluation, end);
}

}  // namespace

TEST_CASE("trace track: sums of training tasks are split into busy and waiting") {
  TraceTrack track(TrackKind::kLearner, "cpu learner 0", 100);
  add(track, SpanKind::kTraining, 0, 11);
  add(track, SpanKind::kWait, 11, 14);
  add(track, SpanKind::kTraining, 14, 16);
  CHECK(track.sums().busy == 13);
  CHECK(track.sums().waiting == 3);
  add(track, SpanKind::kWait, 20, 30, /*in_evaluation=*/true);
  add(track, SpanKind::kEvaluation, 30, 50, /*in_evaluation=*/true);
  CHECK(track.sums().busy == 13);
  CHECK(track.sums().waiting == 3);
  add(track, SpanKind::kTraining, 60, 61);
  CHECK(track.sums().busy == 14);
  REQUIRE(track.spans().size() == 6);
  CHECK(track.spans()[1].begin == 11);
  CHECK(track.spans()[1].end == 14);
  CHECK(track.spans()[1].kind == SpanKind::kWait);
}

TEST_CASE("trace track: keeps the first spans, and only counts and sums the others") {
  TraceTrack track(TrackKind::kLearner, "cpu learner 0", 2);
  for (TraceTime i = 0; i < 5; ++i) add(track, SpanKind::kTraining, 10 * i, 10 * i + 1);
  CHECK(track.spans().size() == 2);
  CHECK(track.spans().back().begin == 10);
  CHECK(track.dropped() == 3);
  CHECK(track.sums().busy == 5);
}

TEST_CASE("trace tracks: one for each address and name, up to a limit") {
  TraceTracks tracks(1);
  std::vector<char> streams(5000);
  TraceTrack* first = tracks.find(&streams[0], TrackKind::kLearner, "a");
  REQUIRE(first != nullptr);
  CHECK(tracks.find(&streams[0], TrackKind::kLearner, "a") == first);
  CHECK(tracks.find(&streams[0], TrackKind::kLearner, "b") !=
        first);  // another stream at the address of a destroyed one
  CHECK(tracks.find(&streams[16], TrackKind::kLearner, "a") != first);
  int found = 0;
  for (char& stream : streams) found += tracks.find(&stream, TrackKind::kLearner, "c") != nullptr ? 1 : 0;
  CHECK(found == 1021);
  CHECK(tracks.refused() == 5000 - 1021);
  int visited = 0;
  tracks.for_each([&](const TraceTrack&) { ++visited; });
  CHECK(visited == 1024);
  CHECK(tracks.find(&streams[0], TrackKind::kLearner, "a") == first);
}

TEST_CASE("trace tracks: concurrent threads get separate tracks") {
  TraceTracks tracks(1000);
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.push_back("stream " + std::to_string(i));
  std::vector<std::thread> threads;
  for (std::string& name : names) {
    threads.emplace_back([&] {
      for (TraceTime i = 0; i < 1000; ++i)
        add(*tracks.find(&name, TrackKind::kInput, name), SpanKind::kInput, i, i + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  int visited = 0;
  tracks.for_each([&](const TraceTrack& track) {
    ++visited;
    CHECK(track.sums().busy == 1000);
    CHECK(track.spans().size() == 1000);
  });
  CHECK(visited == 4);
}

}  // namespace arbalest::jobs
