// The watchdog notices processes that have died, hang or are cut off. Neither MPI nor NCCL does.
//
// Every rank sends a heartbeat to rank 0 and to the rank after it. Those two watch it: rank 0 may be the dead one. A
// rank that sees that another one is silent tells all others, so every survivor can name it. The same channel carries
// the news that a rank fails, questions to a rank that an operation waits for, and the shutdown handshake.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/process/awake_clock.h"
#include "engine/process/operations/transport.h"
#include "engine/process/phase.h"

namespace arbalest::engine::process {

struct WatchdogOptions {
  double peer_timeout_seconds = 30.0;  // a rank that is silent for longer is dead
  // A rank that is this late for an operation hangs, though it sends heartbeats. The time in which any rank works on
  // files does not count.
  double operation_timeout_seconds = 600.0;
  // This function gets warnings, on the thread that calls the watchdog. It may be empty.
  std::function<void(const std::string& message)> warn = {};
};

// The caller passes in the time, in seconds from any start.
class Watchdog final : private Listener {
 public:
  Watchdog(Transport& transport, WatchdogOptions options, double now);

  double peer_timeout() const noexcept { return options_.peer_timeout_seconds; }
  double operation_timeout() const noexcept { return options_.operation_timeout_seconds; }
  void set_peer_timeout(double seconds) noexcept { options_.peer_timeout_seconds = seconds; }
  // The others hear of a new phase at once, and of a new round with the next heartbeat.
  void set_position(const Position& position) noexcept {
    if (position.phase != position_.phase) next_beat_ = now_;
    position_ = position;
  }
  // Sets whether this rank works on files, for as long as they take. The others hear of it with the next heartbeat.
  void set_working(bool is_working) noexcept { is_working_ = is_working; }
  // Returns whether any rank works on files, as far as this one knows. Ranks that wait for it may be late, too.
  bool is_any_working() const noexcept;

  // Call it before each poll of the transport, and often enough: at least every kLongestPause. Returns whether it was
  // time for a heartbeat.
  bool tick(double now);
  // Returns when tick() next has to do something if no message arrives.
  double next_tick() const noexcept { return next_beat_; }

  // Returns a message once a rank is dead or has failed. The message names the rank.
  const std::optional<std::string>& failure() const noexcept { return failure_; }
  // Returns whether the failure is an error of another rank's own.
  bool is_error_of_other_rank() const noexcept { return failure_ && news_.kind == Kind::kFailed && !failed_here_; }
  // Tells all others that this rank fails.
  void announce_failure(const std::string& reason);
  // Tells all others that another rank is to blame. `reason` is the whole message.
  void blame(int rank, const std::string& reason);
  // Returns whether the news of a failure have left this process.
  bool has_spread_failure() const noexcept;

  // Sets the function that answers whether this rank is late for the operation of a channel.
  void on_question(std::function<bool(int channel)> answer) { is_late_ = std::move(answer); }
  // Asks another rank the same. From the first question until any message comes from it, this rank watches it.
  void ask(int rank, int channel);
  // Returns whether the rank last answered that it is late.
  bool is_late(int rank, int channel) const noexcept;

  // Asks every other rank for a sign of life. Its communication thread answers, whatever the rest of it does.
  void call_all();
  // Returns the first rank that has not answered the last call, unless that rank has taken its leave.
  std::optional<int> missing() const noexcept;
  // Returns whether this rank or another one has called.
  bool has_call() const noexcept { return has_call_; }

  // Begins the polite end: this rank starts no further operation. When all ranks have said so, each sends one last
  // message.
  void announce_shutdown();
  // Returns whether every rank has sent its last message, and ours have left.
  bool is_closed() const noexcept;
  bool has_announced_shutdown(int rank) const noexcept;
  // Returns whether the last message of the rank has arrived, and ours to it has left.
  bool has_parted(int rank) const noexcept;
  // Returns whether the rank announced its shutdown at least `seconds` ago.
  bool is_gone_since(int rank, double seconds) const noexcept;

 private:
  enum class Kind : std::uint32_t {
    kBeat = 1,
    kDead,
    kFailed,
    kBlamed,
    kShutdown,
    kLast,
    kQuestion,
    kNotLate,
    kLate,
    kCall,
    kPresent,
    kWorking,
    kNotWorking
  };
  struct Signal {
    std::uint32_t magic = 0x6172'6234;
    Kind kind = Kind::kBeat;
    std::uint64_t round = 0;
    std::uint32_t phase = 0;
    std::int32_t subject = 0;  // the rank that is dead, failed or blamed; the channel of a question or an answer
    double silent_seconds = 0.0;
    std::array<char, 472> text{};  // kFailed, kBlamed: the reason, ended by a 0
  };
  struct Peer {
    bool watched = false;  // by this rank
    bool gets_beats = false;
    double last_heard = 0.0;
    bool warned = false;
    Position position;
    Signal received;
    Signal sent;
    bool is_sending = false;
    bool owes_beat = false;
    bool has_news = false;  // news of the failure are to be sent
    std::optional<int> owes_question;
    std::optional<int> owes_answer;
    std::optional<double> asked_at;  // the first question since its last message
    std::optional<int> late_for;     // the channel of its last answer, if it is late
    bool owes_call = false;
    bool owes_presence = false;
    bool is_called = false;  // and has not answered
    bool is_working = false;
    bool owes_work = false;  // is to hear whether this rank works on files
    double working_since = 0.0;
    bool was_told_of = false;  // a warning has said that it works for long
    bool owes_shutdown = false;
    bool owes_last = false;
    bool sent_last = false;
    std::optional<double> shutdown_at;
    bool got_last = false;
  };

  void on_message(std::uint32_t token, std::size_t bytes) override;
  void handle(int rank, const Signal& signal);
  void handle_news(int rank, const Signal& signal);
  void post_receive(int rank);
  void send_due(int rank);
  void send(int rank, const Signal& signal);
  void look_after(int rank);
  void set_working(int rank, bool is_working);
  void report_work();
  void begin_last_messages();
  static void set_text(Signal& signal, const std::string& text);
  void fail_with(const std::string& message, const Signal& news, int except);
  std::string describe_dead(int rank, const Position& position, double silent_seconds) const;
  double beat_seconds() const noexcept;
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  Transport& transport_;
  WatchdogOptions options_;
  const int rank_;
  const int size_;
  double now_;
  double next_beat_;
  Position position_;
  std::vector<Peer> peers_;
  std::function<bool(int channel)> is_late_;
  bool is_working_ = false;
  bool has_call_ = false;
  bool announced_shutdown_ = false;
  std::optional<std::string> failure_;
  bool failed_here_ = false;
  Signal news_;
};

}  // namespace arbalest::engine::process
