#include "engine/process/world.h"

#include <unistd.h>

#include <cstdio>
#include <new>
#include <utility>

#include "engine/process/operations/agree.h"
#include "engine/process/operations/broadcast.h"
#include "engine/process/operations/direct.h"
#include "engine/process/operations/flag_reduction.h"
#include "engine/process/operations/gather.h"
#include "engine/process/operations/library_all_reduce.h"

namespace arbalest::engine::process {

PreparedAllReduce::PreparedAllReduce(CommunicationThread* communication, std::span<float> values,
                                     AllReduceMethod method, const AllReduceOptions& options)
    : communication_(communication) {
  if (communication_ == nullptr) return;
  const Transport& transport = communication_->transport();
  if (method == AllReduceMethod::kCanonical) {
    operation_ = std::make_unique<AllReduce>(values, transport.rank(), transport.size(), options);
  } else {
    operation_ = std::make_unique<LibraryAllReduce>(values);
  }
  submission_.operation = operation_.get();
  submission_.waits_for_turn = method == AllReduceMethod::kLibrary;
}

PreparedAllReduce::~PreparedAllReduce() = default;

void PreparedAllReduce::start(std::uint64_t turn) {
  if (communication_ == nullptr) return;
  submission_.channel = all_reduce_channel(turn);
  submission_.turn = turn;
  communication_->start(submission_);
}

bool PreparedAllReduce::is_done() { return communication_ == nullptr || communication_->is_done(submission_); }

void PreparedAllReduce::wait() {
  if (communication_ != nullptr) communication_->wait(submission_);
}

World::World(CommunicationThread::Open open, CommunicationOptions options)
    : communication_(std::make_unique<CommunicationThread>(std::move(open), std::move(options))),
      flags_(communication_.get()) {
  const Transport& transport = communication_->transport();
  rank_ = transport.rank();
  size_ = transport.size();
  local_rank_ = transport.local_rank();
  local_size_ = transport.local_size();
  hosts_.clear();
  for (int rank = 0; rank < size_; ++rank) hosts_.push_back(transport.host(rank));
}

World::~World() = default;

void World::run(Operation& operation) {
  if (communication_ != nullptr) run_on(operation, control_channel(controls_++));
}

void World::run_on(Operation& operation, int channel) {
  Submission submission{.operation = &operation, .channel = channel};
  communication_->start(submission);
  communication_->wait(submission);
}

void World::send(std::string_view bytes, int to) {
  ARBALEST_CHECK(communication_ != nullptr && to != rank_);
  DirectSend send(bytes, to);
  run_on(send, kDirectChannel);
}

std::string World::receive(int from) {
  ARBALEST_CHECK(communication_ != nullptr && from != rank_);
  DirectReceive receive(from);
  run_on(receive, kDirectChannel);
  return std::move(receive.result());
}

void World::exchange(Operation& operation) {
  ARBALEST_CHECK(communication_ != nullptr);
  run_on(operation, kExchangeChannel);
}

void World::broadcast(std::string& bytes, int root) {
  Broadcast broadcast(bytes, root);
  run(broadcast);
}

std::vector<std::string> World::gather(std::string_view bytes) {
  if (communication_ == nullptr) return {std::string(bytes)};
  Gather gather(bytes);
  run(gather);
  return std::move(gather.result());
}

std::vector<int> World::agree(std::string_view value) {
  Agree agree(value);
  run(agree);
  return agree.differing();
}

void World::barrier() { any_of(0); }

std::uint64_t World::any_of(std::uint64_t flags) {
  FlagReduction reduction(flags);
  run(reduction);
  return reduction.result();
}

PendingFlags World::start_flags(std::uint64_t flags) { return flags_.start(flags, control_channel(controls_++)); }

std::unique_ptr<PreparedAllReduce> World::prepare_all_reduce(std::span<float> values) {
  try {
    return std::make_unique<PreparedAllReduce>(communication_.get(), values, all_reduce_method_, all_reduce_options_);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kOutOfMemory, "out of memory for the buffers of an all-reduce of {} elements", values.size());
  }
}

std::uint64_t World::next_turn() noexcept {
  if (communication_ != nullptr) communication_->set_enqueued(turns_ + 1);
  return turns_++;
}

void World::set_position(std::uint64_t round, Phase phase) noexcept {
  if (communication_ != nullptr) communication_->set_position({round, phase});
}

World::FileWork::FileWork(const World& world) : communication_(world.communication_.get()) {
  if (communication_ != nullptr) communication_->begin_file_work();
}

World::FileWork::~FileWork() {
  if (communication_ != nullptr) communication_->end_file_work();
}

void World::watch_stop(const std::atomic<int>& signal) noexcept {
  if (communication_ != nullptr) communication_->watch_stop(signal);
}

void World::set_peer_timeout(double seconds) noexcept {
  if (communication_ != nullptr) communication_->set_peer_timeout(seconds);
}

double World::peer_timeout() const noexcept { return communication_ == nullptr ? 0.0 : communication_->peer_timeout(); }

void World::check(double seconds) const {
  if (communication_ != nullptr) communication_->check(seconds);
}

void World::announce_failure(const Error& error) {
  if (communication_ != nullptr) communication_->announce_failure(error);
}

Mailbox& World::mailbox() {
  ARBALEST_CHECK(communication_ != nullptr);
  if (!mailbox_) mailbox_ = std::make_unique<Mailbox>(*communication_);
  return *mailbox_;
}

// The last messages are not awaited (Mailbox::await). So all ranks first wait for each other in an operation, which
// names a rank that hangs.
void World::close() {
  if (mailbox_) {
    barrier();
    mailbox_->announce_shutdown();
  }
  if (communication_ != nullptr) communication_->close();
}

void World::abort(int exit_code) {
  if (communication_ != nullptr) communication_->abort(exit_code);
  std::fflush(nullptr);
  _exit(exit_code);
}

double World::communication_cpu_seconds() const {
  return communication_ == nullptr ? 0.0 : communication_->cpu_seconds();
}

std::unique_ptr<World> open_world(const std::optional<Launch>& launch, const CommunicationOptions& options,
                                  const std::vector<std::filesystem::path>& directories) {
  if (!launch) return std::make_unique<World>();
  return std::make_unique<World>([&] { return open_module_transport(*launch, directories); }, options);
}

}  // namespace arbalest::engine::process
