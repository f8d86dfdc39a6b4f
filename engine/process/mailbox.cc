#include "engine/process/mailbox.h"

#include <algorithm>
#include <utility>

namespace arbalest::engine::process {

Mailbox::Mailbox(CommunicationThread& communication)
    : communication_(communication),
      receipt_([this](int from, std::string bytes) { arrived(from, std::move(bytes)); }) {
  receiving_.operation = &receipt_;
  receiving_.channel = kMailboxChannel;
  communication_.start(receiving_);
}

void Mailbox::arrived(int from, std::string bytes) {
  const std::lock_guard lock(mutex_);
  for (Awaited& awaited : awaited_) {
    if (awaited.operation.peer() == from) awaited.operation.end();
  }
  arrived_.push_back({from, std::move(bytes)});
  if (action_) action_();
}

void Mailbox::await(std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  while (!awaited_.empty() && communication_.is_done(awaited_.front().submission)) awaited_.pop_front();
  for (Awaited& awaited : awaited_) {
    if (std::ranges::find(ranks, awaited.operation.peer()) == ranks.end()) awaited.operation.end();
  }
  for (const int rank : ranks) {
    const auto goes_on = [rank](const Awaited& awaited) {
      return awaited.operation.peer() == rank && !awaited.operation.done();
    };
    if (std::ranges::any_of(awaited_, goes_on)) continue;
    Awaited& awaited = awaited_.emplace_back(rank);
    awaited.submission.operation = &awaited.operation;
    awaited.submission.channel = kMailboxChannel;
    communication_.start(awaited.submission);
  }
}

void Mailbox::send(int to, std::string bytes) {
  ARBALEST_CHECK(!bytes.empty());
  post(to, std::move(bytes));
}

void Mailbox::post(int to, std::string bytes) {
  const std::lock_guard lock(mutex_);
  while (!outgoing_.empty() && communication_.is_done(outgoing_.front().submission)) outgoing_.pop_front();
  Outgoing& message = outgoing_.emplace_back(std::move(bytes), to);
  message.submission.operation = &message.operation;
  message.submission.channel = kMailboxChannel;
  communication_.start(message.submission);
}

std::optional<Mailbox::Message> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  if (arrived_.empty()) return std::nullopt;
  Message message = std::move(arrived_.front());
  arrived_.pop_front();
  return message;
}

void Mailbox::on_arrival(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  action_ = std::move(action);
}

void Mailbox::announce_shutdown() {
  await({});
  const Transport& transport = communication_.transport();
  for (int rank = 0; rank < transport.size(); ++rank) {
    if (rank != transport.rank()) post(rank, {});
  }
}

}  // namespace arbalest::engine::process
