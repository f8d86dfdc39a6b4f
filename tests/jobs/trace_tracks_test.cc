// Tracks of a trace: the spans they keep, their counts and sums.
#include <string>
#include <thread>
#include <vector>

#include "jobs/report/trace_tracks.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {
namespace {

void add(TraceTrack& track, const char* name, TraceTime begin, TraceTime end) {
  track.begin(begin);
  track.end(name, end);
}

}  // namespace

TEST_CASE("trace track: adds up what is training, and tells waiting from work") {
  TraceTrack track("cpu learner 0", 100);
  add(track, "parameters", 0, 1);
  add(track, "gradient", 1, 11);
  add(track, "wait for averaging's read", 11, 14);
  add(track, "update", 14, 16);
  CHECK(track.sums().busy == 13);
  CHECK(track.sums().waiting == 3);
  for (const char* first : {"wait for the central model's copy", "evaluate", "parameters for statistics"}) {
    add(track, first, 20, 30);
    add(track, "evaluate", 30, 50);
    add(track, "result", 50, 60);
    CHECK(track.sums().busy == 13);
    CHECK(track.sums().waiting == 3);
  }
  add(track, "parameters", 60, 61);
  CHECK(track.sums().busy == 14);
  CHECK(track.spans().size() == 14);
  CHECK(track.spans()[1].begin == 1);
  CHECK(track.spans()[1].end == 11);
}

TEST_CASE("trace track: keeps the first spans, and counts and adds up the others") {
  TraceTrack track("cpu learner 0", 2);
  for (TraceTime i = 0; i < 5; ++i) add(track, "gradient", 10 * i, 10 * i + 1);
  CHECK(track.spans().size() == 2);
  CHECK(track.spans().back().begin == 10);
  CHECK(track.dropped() == 3);
  CHECK(track.sums().busy == 5);
}

TEST_CASE("trace tracks: one for each address and name, until there are too many") {
  TraceTracks tracks(1);
  std::vector<char> streams(5000);
  TraceTrack* first = tracks.find(&streams[0], "a");
  REQUIRE(first != nullptr);
  CHECK(tracks.find(&streams[0], "a") == first);
  CHECK(tracks.find(&streams[0], "b") != first);  // another stream at the address of a destroyed one
  CHECK(tracks.find(&streams[16], "a") != first);
  int found = 0;
  for (char& stream : streams) found += tracks.find(&stream, "c") != nullptr ? 1 : 0;
  CHECK(found == 1021);
  CHECK(tracks.refused() == 5000 - 1021);
  int visited = 0;
  tracks.for_each([&](const TraceTrack&) { ++visited; });
  CHECK(visited == 1024);
  CHECK(tracks.find(&streams[0], "a") == first);
}

TEST_CASE("trace tracks: threads that come at the same time get tracks of their own") {
  TraceTracks tracks(1000);
  std::vector<std::string> names;
  for (int i = 0; i < 4; ++i) names.push_back("stream " + std::to_string(i));
  std::vector<std::thread> threads;
  for (std::string& name : names) {
    threads.emplace_back([&] {
      for (TraceTime i = 0; i < 1000; ++i) add(*tracks.find(&name, name), "work", i, i + 1);
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
