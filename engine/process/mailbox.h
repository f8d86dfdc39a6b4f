// Messages that come at any time from the other processes of a job (operations/mailbox_messages.h). World keeps one
// mailbox, which lives as long as the communication thread, so messages may be under way when their sender goes away.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/process/communication_thread.h"
#include "engine/process/operations/mailbox_messages.h"

namespace arbalest::engine::process {

// Any thread may call any function.
class Mailbox {
 public:
  struct Message {
    int from = 0;
    std::string bytes = {};
  };

  // Begins to receive. The mailbox must outlive the thread's use of its operations: CommunicationThread's end.
  explicit Mailbox(CommunicationThread& communication);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Sends bytes, which must not be empty, and returns at once.
  void send(int to, std::string bytes);
  // Returns the oldest message that was not taken; none if there is none.
  std::optional<Message> take();
  // From now on, `action` is called on the communication thread whenever a message has come; empty: nothing is. When
  // the call returns, no earlier action runs any more.
  void on_arrival(std::function<void()> action);
  // This rank cannot go on without messages of `ranks`: a rank that keeps it waiting is treated like one that is late
  // for an operation. The wait for a rank ends when a message of it comes, or with a call that does not name it.
  void await(std::span<const int> ranks);
  // Tells all other ranks that no further message comes. The communication ends only when all ranks have said so.
  void announce_shutdown();

 private:
  struct Outgoing {
    Outgoing(std::string bytes, int to) : operation(std::move(bytes), to) {}

    MailboxSend operation;
    Submission submission = {};
  };

  struct Awaited {
    explicit Awaited(int peer) : operation(peer) {}

    MailboxWait operation;
    Submission submission = {};
  };

  void post(int to, std::string bytes);
  void arrived(int from, std::string bytes);

  CommunicationThread& communication_;
  std::mutex mutex_;
  std::deque<Message> arrived_;
  std::function<void()> action_;
  std::deque<Outgoing> outgoing_;  // oldest first
  std::deque<Awaited> awaited_;    // oldest first, with those that are over
  MailboxReceipt receipt_;
  Submission receiving_;
};

}  // namespace arbalest::engine::process
