#include "tests/process/simulated_cluster.h"

#include <algorithm>
#include <utility>

#include "engine/process/operations/all_reduce.h"
#include "engine/process/operations/direct.h"
#include "engine/process/operations/library_all_reduce.h"

namespace arbalest::tests {

using engine::process::AllReduce;
using engine::process::LibraryAllReduce;
using engine::process::Operation;
using engine::process::Progress;
using engine::process::Submission;

SimulatedCluster::SimulatedCluster(int ranks, std::uint64_t seed, Program program, const Options& options)
    : program_(std::move(program)),
      options_(options),
      network_(ranks, seed, options.network),
      generator_(seed),
      ranks_(static_cast<std::size_t>(ranks)) {
  network_.on_ended([this](int rank) { wake(rank, network_.now()); });
  for (int rank = 0; rank < ranks; ++rank) {
    Rank& state = ranks_[static_cast<std::size_t>(rank)];
    state.progress = std::make_unique<Progress>(
        network_.transport(rank),
        engine::process::WatchdogOptions{.peer_timeout_seconds = options.peer_timeout_seconds,
                                         .operation_timeout_seconds = options.operation_timeout_seconds,
                                         .warn = [this](const std::string& text) { warnings_.push_back(text); }},
        0.0);
    for (int stream = 0; stream < options.depth; ++stream) state.streams.push_back({.next_step = stream});
    wake(rank, 0.0);
  }
}

void SimulatedCluster::stall(int rank, double seconds) {
  ranks_[static_cast<std::size_t>(rank)].stalled_until = network_.now() + seconds;
}

void SimulatedCluster::compute(int rank, double seconds) {
  for (int stream = 0; stream < options_.depth; ++stream) compute(rank, seconds, stream);
}

void SimulatedCluster::compute(int rank, double seconds, int stream) {
  std::vector<Stream>& streams = ranks_[static_cast<std::size_t>(rank)].streams;
  streams[static_cast<std::size_t>(stream)].ready_at = network_.now() + seconds;
}

void SimulatedCluster::fail(int rank, const engine::Error& error) {
  if (!network_.is_alive(rank)) return;
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  state.fails_by_itself = true;
  state.progress->fail_here(error);
  wake(rank, network_.now());
}

void SimulatedCluster::request_stop(int rank) {
  if (!network_.is_alive(rank)) return;
  ranks_[static_cast<std::size_t>(rank)].progress->request_stop();
  wake(rank, network_.now());
}

void SimulatedCluster::wake(int rank, double time) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if (time <= network_.now()) {
    if (state.wakes) return;
    state.wakes = true;
    network_.at(network_.now(), [this, rank, &state] {
      state.wakes = false;
      step(rank);
    });
  } else {
    network_.at(time, [this, rank] { step(rank); });
  }
}

bool SimulatedCluster::has_ended(const Rank& rank) const {
  return rank.progress->state() == Progress::State::kClosed || rank.progress->state() == Progress::State::kFailed;
}

void SimulatedCluster::step(int rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  if (!network_.is_alive(rank) || has_ended(state)) return;
  if (network_.now() < state.stalled_until) return wake(rank, state.stalled_until);
  const double due = state.progress->next_step();
  state.progress->step(network_.now());
  if (!network_.is_alive(rank)) return;
  if (state.progress->state() == Progress::State::kRunning) begin_operations(rank);
  if (has_ended(state)) {
    state.end_time = network_.now();
    if (state.fails_by_itself && state.progress->state() == Progress::State::kFailed) network_.kill(rank);
    return;
  }
  if (network_.has_ended_messages(rank)) wake(rank, network_.now());
  if (due <= network_.now()) wake(rank, state.progress->next_step());
}

// Frees the streams whose operations are done.
void SimulatedCluster::settle(Rank& rank) {
  for (Stream& stream : rank.streams) {
    const Operation* operation = stream.submission.operation;
    if (operation == nullptr || !stream.submission.is_done || !operation->done()) continue;
    rank.progress->forget(*operation);
    stream.submission = {};
  }
}

double SimulatedCluster::pause() {
  if (!options_.has_random_pauses) return options_.pause_seconds;
  return 2.0 * options_.pause_seconds * static_cast<double>(generator_() >> 11) * 0x1p-53;
}

void SimulatedCluster::submit(int rank, Stream& stream) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  std::unique_ptr<Operation> operation = program_(rank, stream.next_step);
  stream.has_more = operation != nullptr;
  if (!stream.has_more) return;
  const auto turn = static_cast<std::uint64_t>(stream.next_step);
  const bool is_library = dynamic_cast<LibraryAllReduce*>(operation.get()) != nullptr;
  const bool is_all_reduce = is_library || dynamic_cast<AllReduce*>(operation.get()) != nullptr;
  const bool is_direct = dynamic_cast<engine::process::DirectSend*>(operation.get()) != nullptr ||
                         dynamic_cast<engine::process::DirectReceive*>(operation.get()) != nullptr;
  const std::uint64_t number = options_.first_number + turn;
  stream.submission = {.operation = operation.get(),
                       .channel = is_all_reduce ? engine::process::all_reduce_channel(number)
                                  : is_direct   ? engine::process::kDirectChannel
                                                : engine::process::control_channel(number),
                       .turn = turn,
                       .waits_for_turn = is_library};
  stream.next_step += options_.depth;
  const auto first = std::ranges::min_element(state.streams, {}, &Stream::next_step);
  state.progress->set_enqueued(options_.first_number + static_cast<std::uint64_t>(first->next_step));
  stream.ready_at = network_.now() + pause();
  state.operations.push_back(std::move(operation));
  state.queue.push(stream.submission);
}

void SimulatedCluster::begin_operations(int rank) {
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  for (bool has_begun = true; has_begun;) {
    settle(state);
    for (Stream& stream : state.streams) {
      if (!stream.has_more || stream.submission.operation != nullptr) continue;
      if (network_.now() < stream.ready_at) {
        if (std::exchange(stream.wakes_at, stream.ready_at) != stream.ready_at) wake(rank, stream.ready_at);
      } else {
        submit(rank, stream);
      }
    }
    std::vector<Submission*> ready;
    state.queue.take_ready(ready);
    has_begun = !ready.empty();
    for (Submission* submission : ready) {
      state.progress->start(*submission->operation, submission->channel);
      submission->is_done = true;  // it has started, so it ends when its operation is done
      if (state.progress->state() != Progress::State::kRunning) return;
    }
  }
  const auto is_over = [](const Stream& stream) { return !stream.has_more && stream.submission.operation == nullptr; };
  if (std::ranges::all_of(state.streams, is_over)) state.progress->close();
}

bool SimulatedCluster::run(double until) {
  const auto is_over = [&] {
    for (int rank = 0; rank < size(); ++rank) {
      if (network_.is_alive(rank) && !has_ended(ranks_[static_cast<std::size_t>(rank)])) return false;
    }
    return true;
  };
  while (!is_over()) {
    if (!network_.step(until)) return false;
  }
  return true;
}

std::optional<std::string> SimulatedCluster::failure(int rank) const {
  const std::optional<engine::Error>& failure = ranks_[static_cast<std::size_t>(rank)].progress->failure();
  return failure ? std::optional<std::string>(failure->what()) : std::nullopt;
}

}  // namespace arbalest::tests
