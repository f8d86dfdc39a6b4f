// Streams of GPUs, on the stand-in.
#include "engine/devices.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

namespace {

using namespace arbalest;

TEST_CASE("asking whether work has ended leaves no error for the work that follows") {
  int unfinished = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    tests::cuda_stand_in::reset({}, seed);
    const auto device = engine::open_device(engine::parse_device("cuda:0"));
    const engine::Buffer buffer = device->allocate(4);
    const auto stream = device->create_stream({.name = "test"});
    for (int i = 0; i < 10; ++i) stream->fill_zero(buffer.data(), 4, "work");
    const engine::Event event = stream->record();
    for (; !event.is_complete(); ++unfinished) REQUIRE_NOTHROW(stream->fill_zero(buffer.data(), 4, "more work"));
    stream->drain();
  }
  CHECK(unfinished > 0);
}

}  // namespace
