// The letters between the processes of a job (operations/letters.h). World keeps one mailbox, which lives as long as
// the communication thread, so letters may be under way whenever their sender goes away.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "engine/process/communication_thread.h"
#include "engine/process/operations/letters.h"

namespace arbalest::engine::process {

// Any thread may call any function.
class Mailbox {
 public:
  struct Letter {
    int from = 0;
    std::string bytes = {};
  };

  // Begins to receive. The mailbox must outlive the thread's use of its operations: CommunicationThread's end.
  explicit Mailbox(CommunicationThread& communication);
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Sends bytes, which must not be empty, and returns at once.
  void send(int to, std::string bytes);
  // Returns the oldest letter that was not taken; none if there is none.
  std::optional<Letter> take();
  // From now on, `action` is called on the communication thread whenever a letter has come; empty: nothing is. When the
  // call returns, no earlier action runs any more.
  void on_arrival(std::function<void()> action);
  // This rank cannot go on without letters of `ranks`: a rank that keeps it waiting is treated like one that is late
  // for an operation. The wait for a rank ends when a letter of it comes, or with a call that does not name it.
  void await(std::span<const int> ranks);
  // Tells all other ranks that no further letter comes. The communication ends only when all ranks have said so.
  void announce_shutdown();

 private:
  struct Outgoing {
    Outgoing(std::string bytes, int to) : operation(std::move(bytes), to) {}

    LetterSend operation;
    Submission submission = {};
  };

  struct Awaited {
    explicit Awaited(int peer) : operation(peer) {}

    LetterWait operation;
    Submission submission = {};
  };

  void post(int to, std::string bytes);
  void arrived(int from, std::string bytes);

  CommunicationThread& communication_;
  std::mutex mutex_;
  std::deque<Letter> arrived_;
  std::function<void()> action_;
  std::deque<Outgoing> outgoing_;  // oldest first
  std::deque<Awaited> awaited_;    // oldest first, with those that are over
  LetterReceipt receipt_;
  Submission receiving_;
};

}  // namespace arbalest::engine::process
