// Streams of GPUs, on the stand-in.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"

namespace {

using namespace arbalest;

TEST_CASE("querying whether work has ended leaves no error for the next work") {
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

TEST_CASE("data that a GPU delivers is in place when the event is complete, for any number of words") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    tests::cuda_stand_in::reset({}, seed);
    const auto device = engine::open_device(engine::parse_device("cuda:0"));
    constexpr std::size_t kWords = 70;  // more than the kernel has threads
    constexpr std::size_t kBytes = kWords * sizeof(std::uint32_t);
    std::vector<std::uint32_t> numbers(kWords);
    std::iota(numbers.begin(), numbers.end(), 1U);
    const engine::Buffer source = device->allocate(kBytes);
    const engine::Buffer target = device->allocate_host(kBytes + sizeof(std::uint32_t));
    const std::span delivered(target.as<std::uint32_t>(), kWords + 1);
    const auto stream = device->create_stream({.name = "test"});
    stream->copy(source.data(), numbers.data(), kBytes, "copy");
    const engine::Event event = stream->deliver(target.data(), source.data(), kBytes, "result");
    CHECK(event.position() == 1);
    event.synchronize();
    CHECK(std::ranges::equal(delivered.first(kWords), numbers));
    CHECK(delivered[kWords] == 0);
    CHECK(stream->record().position() == 1);  // nothing was enqueued since
    CHECK_THROWS_AS(stream->deliver(target.data(), source.data(), 3, "half a word"), engine::Error);
  }
}

TEST_CASE("words are sent to a GPU without a copy engine, for any number of words") {
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  const auto stream = device->create_stream({.name = "test"});
  for (const std::size_t words : {1U, 76U, 128U, 129U, 960U, 961U, 2500U}) {
    CAPTURE(words);
    std::vector<std::uint32_t> numbers(words);
    std::iota(numbers.begin(), numbers.end(), 1U);
    const std::vector<std::uint32_t> expected = numbers;
    const std::size_t bytes = words * sizeof(std::uint32_t);
    const engine::Buffer target = device->allocate(bytes + sizeof(std::uint32_t));
    const std::uint64_t copies = tests::cuda_stand_in::calls("cudaMemcpyAsync");
    stream->fetch(target.data(), numbers.data(), bytes, "parameters");
    CHECK(tests::cuda_stand_in::calls("cudaMemcpyAsync") == copies);
    std::ranges::fill(numbers, 0U);  // they have already been read
    std::vector<std::uint32_t> found(words + 1);
    stream->copy(found.data(), target.data(), bytes + sizeof(std::uint32_t), "back");
    stream->record().synchronize();
    CHECK(std::ranges::equal(std::span(found).first(words), expected));
    CHECK(found[words] == 0);
  }
  CHECK_THROWS_AS(stream->fetch(nullptr, nullptr, 3, "half a word"), engine::Error);
}

TEST_CASE("tasks that call no library do not query the runtime's last error") {
  const auto device = engine::open_device(engine::parse_device("cuda:0"));
  const engine::Buffer buffer = device->allocate(8);
  const auto stream = device->create_stream({.name = "test"});
  const auto other = device->create_stream({.name = "other"});
  stream->begin_recording();
  stream->fill_zero(buffer.data(), 4, "recorded");
  const auto graph = stream->end_recording();
  const std::uint64_t before = tests::cuda_stand_in::calls("cudaGetLastError");
  stream->launch(*graph, "graph");
  stream->copy(buffer.as<std::byte>() + 4, buffer.data(), 4, "copy");
  other->wait(stream->record(), "wait");
  CHECK(tests::cuda_stand_in::calls("cudaGetLastError") == before);
  other->record().synchronize();
}

TEST_CASE("a host that waits for a failing GPU gets an error") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    tests::cuda_stand_in::reset({}, seed);
    {
      const auto device = engine::open_device(engine::parse_device("cuda:0"));
      const engine::Buffer buffer = device->allocate(4);
      const auto stream = device->create_stream({.name = "test"});
      tests::cuda_stand_in::fail_execution(cudaErrorIllegalAddress, 3);
      const auto enqueue_and_wait = [&] {
        for (int i = 0; i < 10; ++i) stream->fill_zero(buffer.data(), 4, "work");
        stream->record().synchronize();
      };
      CHECK_THROWS_WITH(enqueue_and_wait(), Catch::Matchers::Contains("illegal memory access"));
    }
    tests::cuda_stand_in::reset();  // memory of a failed device cannot be freed
  }
}

}  // namespace
