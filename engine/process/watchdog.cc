#include "engine/process/watchdog.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace arbalest::engine::process {

namespace {

constexpr double kMostBeatSeconds = 0.5;
constexpr double kBeatsPerTimeout = 6.0;
constexpr double kWarningsPerTimeout = 3.0;  // a warning after a third of the time

}  // namespace

Watchdog::Watchdog(Transport& transport, WatchdogOptions options, double now)
    : transport_(transport),
      options_(std::move(options)),
      rank_(transport.rank()),
      size_(transport.size()),
      now_(now),
      next_beat_(now),
      peers_(static_cast<std::size_t>(transport.size())) {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    peer(rank).last_heard = now;
    peer(rank).watched = rank_ == 0 || rank == (rank_ + size_ - 1) % size_;
    peer(rank).gets_beats = rank == 0 || rank == (rank_ + 1) % size_;
    post_receive(rank);
  }
}

double Watchdog::beat_seconds() const noexcept {
  return std::min(kMostBeatSeconds, options_.peer_timeout_seconds / kBeatsPerTimeout);
}

bool Watchdog::tick(double now) {
  const double pause = now - now_;
  now_ = now;
  if (pause > kLongestPause) {  // this process was stopped itself and has heard nobody; that is not the others' fault
    for (Peer& peer : peers_) {
      peer.last_heard += pause;
      if (peer.shutdown_at) *peer.shutdown_at += pause;
      if (peer.asked_at) *peer.asked_at += pause;
      peer.working_since += pause;
    }
  }
  const bool beats = now_ >= next_beat_;
  if (beats) {
    next_beat_ = now_ + beat_seconds();
    report_work();
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    if (peer(rank).watched || peer(rank).asked_at) look_after(rank);
    if (beats && peer(rank).gets_beats) peer(rank).owes_beat = true;
    send_due(rank);
  }
  return beats;
}

bool Watchdog::is_any_working() const noexcept {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.is_working; });
}

void Watchdog::set_working(int rank, bool is_working) {
  Peer& peer = this->peer(rank);
  if (is_working && !peer.is_working) peer.working_since = now_;
  peer.is_working = is_working;
  peer.was_told_of &= is_working;
}

// All ranks must know, because one that waits for this rank keeps others waiting. Rank 0 warns.
void Watchdog::report_work() {
  if (peer(rank_).is_working != is_working_) {
    set_working(rank_, is_working_);
    for (int rank = 0; rank < size_; ++rank) peer(rank).owes_work = rank != rank_;
  }
  for (int rank = 0; rank < size_ && rank_ == 0; ++rank) {
    Peer& peer = this->peer(rank);
    const double seconds = now_ - peer.working_since;
    if (!peer.is_working || peer.was_told_of || seconds < options_.operation_timeout_seconds) continue;
    peer.was_told_of = true;
    if (!options_.warn) continue;
    options_.warn(
        fmt::format("{} has been reading or writing files for {:.0f} s; the others wait for it. Look at its disk or "
                    "network file system",
                    place_of(transport_, rank), seconds));
  }
}

void Watchdog::look_after(int rank) {
  Peer& peer = this->peer(rank);
  const bool takes_last = peer.sent_last && peer.is_sending;  // our last message has not left yet
  if (failure_ || (peer.got_last && !takes_last)) return;
  const double silent = now_ - (peer.watched ? peer.last_heard : peer.asked_at.value_or(now_));
  if (silent >= options_.peer_timeout_seconds) {
    const Signal news{.kind = Kind::kDead,
                      .round = peer.position.round,
                      .phase = static_cast<std::uint32_t>(peer.position.phase),
                      .subject = rank,
                      .silent_seconds = silent};
    fail_with(describe_dead(rank, peer.position, silent), news, -1);
  } else if (silent >= options_.peer_timeout_seconds / kWarningsPerTimeout && !peer.warned) {
    peer.warned = true;
    if (options_.warn) {
      options_.warn(
          fmt::format("{} has been silent for {:.0f} s (round {}, {}); the run ends if it stays silent for {:.0f} s",
                      place_of(transport_, rank), silent, peer.position.round, phase_name(peer.position.phase),
                      options_.peer_timeout_seconds));
    }
  }
}

std::string Watchdog::describe_dead(int rank, const Position& position, double silent_seconds) const {
  return fmt::format(
      "{} is dead, stopped or cut off: it has been silent for {:.1f} s. Its last heartbeat came from round {} ({}). "
      "Look at its output and at its host, and start the run again, from its last checkpoint if it has one",
      place_of(transport_, rank), silent_seconds, position.round, phase_name(position.phase));
}

// Whoever hears the news passes it on, because the connection of two others may be cut.
void Watchdog::fail_with(const std::string& message, const Signal& news, int except) {
  if (failure_) return;
  failure_ = message;
  news_ = news;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && rank != except) peer(rank).has_news = true;
  }
}

void Watchdog::announce_failure(const std::string& reason) {
  Signal news{.kind = Kind::kFailed,
              .round = position_.round,
              .phase = static_cast<std::uint32_t>(position_.phase),
              .subject = rank_};
  set_text(news, reason);
  failed_here_ |= !failure_;
  fail_with(reason, news, -1);
}

void Watchdog::blame(int rank, const std::string& reason) {
  Signal news{.kind = Kind::kBlamed, .subject = rank};
  set_text(news, reason);
  fail_with(reason, news, -1);
}

void Watchdog::set_text(Signal& signal, const std::string& text) {
  std::copy_n(text.data(), std::min(text.size(), signal.text.size() - 1), signal.text.data());
}

void Watchdog::ask(int rank, int channel) {
  Peer& peer = this->peer(rank);
  peer.owes_question = channel;
  if (!peer.asked_at) peer.asked_at = now_;
}

bool Watchdog::is_late(int rank, int channel) const noexcept {
  return peers_[static_cast<std::size_t>(rank)].late_for == channel;
}

void Watchdog::call_all() {
  has_call_ = true;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) peer(rank).owes_call = peer(rank).is_called = true;
  }
}

std::optional<int> Watchdog::missing() const noexcept {
  const auto is_missing = [](const Peer& peer) { return peer.is_called && !peer.sent_last && !peer.got_last; };
  const auto first = std::ranges::find_if(peers_, is_missing);
  return first == peers_.end() ? std::nullopt : std::optional(static_cast<int>(first - peers_.begin()));
}

bool Watchdog::has_spread_failure() const noexcept {
  return failure_ && std::ranges::none_of(peers_, [](const Peer& peer) { return peer.has_news || peer.is_sending; });
}

void Watchdog::announce_shutdown() {
  announced_shutdown_ = true;
  for (int rank = 0; rank < size_; ++rank) {
    peer(rank).owes_shutdown = rank != rank_;
    peer(rank).gets_beats = rank != rank_;  // ranks in the shutdown handshake watch all ranks
  }
  begin_last_messages();
}

bool Watchdog::is_closed() const noexcept {
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !has_parted(rank)) return false;
  }
  return announced_shutdown_;
}

bool Watchdog::has_parted(int rank) const noexcept {
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  return peer.got_last && peer.sent_last && !peer.is_sending;
}

bool Watchdog::has_announced_shutdown(int rank) const noexcept {
  return peers_[static_cast<std::size_t>(rank)].shutdown_at.has_value();
}

bool Watchdog::is_gone_since(int rank, double seconds) const noexcept {
  const std::optional<double>& at = peers_[static_cast<std::size_t>(rank)].shutdown_at;
  return at && now_ - *at >= seconds;
}

void Watchdog::post_receive(int rank) {
  transport_.receive(rank, 0, std::as_writable_bytes(std::span(&peer(rank).received, 1)),
                     {this, static_cast<std::uint32_t>(rank)});
}

void Watchdog::send(int rank, const Signal& signal) {
  Peer& peer = this->peer(rank);
  peer.sent = signal;
  peer.is_sending = true;
  transport_.send(rank, 0, std::as_bytes(std::span(&peer.sent, 1)), {this, static_cast<std::uint32_t>(size_ + rank)});
}

// One message to a rank is under way at a time. News come before all else.
void Watchdog::send_due(int rank) {
  Peer& peer = this->peer(rank);
  if (peer.is_sending || peer.sent_last) return;
  if (peer.has_news) {
    peer.has_news = false;
    send(rank, news_);
  } else if (peer.owes_shutdown) {
    peer.owes_shutdown = false;
    send(rank, {.kind = Kind::kShutdown});
  } else if (peer.owes_last) {
    peer.owes_last = false;
    peer.sent_last = true;
    peer.last_heard = now_;  // it has the whole time to take the message
    send(rank, {.kind = Kind::kLast});
  } else if (peer.owes_answer) {
    const int channel = *std::exchange(peer.owes_answer, std::nullopt);
    send(rank, {.kind = is_late_ && !is_late_(channel) ? Kind::kNotLate : Kind::kLate,
                .round = position_.round,
                .phase = static_cast<std::uint32_t>(position_.phase),
                .subject = channel});
  } else if (peer.owes_presence) {
    peer.owes_presence = false;
    send(rank, {.kind = Kind::kPresent});
  } else if (peer.owes_call && !failure_) {
    peer.owes_call = false;
    send(rank, {.kind = Kind::kCall});
  } else if (peer.owes_work && !failure_) {
    peer.owes_work = false;
    send(rank, {.kind = this->peer(rank_).is_working ? Kind::kWorking : Kind::kNotWorking});
  } else if (peer.owes_beat && !failure_) {
    peer.owes_beat = false;
    send(rank, {.kind = Kind::kBeat, .round = position_.round, .phase = static_cast<std::uint32_t>(position_.phase)});
  } else if (peer.owes_question && !failure_) {
    send(rank, {.kind = Kind::kQuestion, .subject = *std::exchange(peer.owes_question, std::nullopt)});
  }
}

void Watchdog::on_message(std::uint32_t token, std::size_t bytes) {
  const bool was_sent = token >= static_cast<std::uint32_t>(size_);
  const int rank = static_cast<int>(token) - (was_sent ? size_ : 0);
  if (was_sent) {
    peer(rank).is_sending = false;
    send_due(rank);
    return;
  }
  const Signal signal = peer(rank).received;
  if (bytes != sizeof(Signal) || signal.magic != Signal{}.magic) {
    fail(ErrorKind::kPeer,
         "{} runs another version of the program, or has another byte order; start the same program on all hosts",
         place_of(transport_, rank));
  }
  peer(rank).last_heard = now_;
  peer(rank).warned = false;
  peer(rank).asked_at.reset();
  if (signal.kind != Kind::kLast) post_receive(rank);
  handle(rank, signal);
}

void Watchdog::handle(int rank, const Signal& signal) {
  Peer& peer = this->peer(rank);
  const Position position{signal.round, static_cast<Phase>(signal.phase)};
  switch (signal.kind) {
    case Kind::kBeat: peer.position = position; break;
    case Kind::kDead:
    case Kind::kFailed:
    case Kind::kBlamed: handle_news(rank, signal); break;
    case Kind::kShutdown:
      peer.shutdown_at = now_;
      begin_last_messages();
      break;
    case Kind::kLast: peer.got_last = true; break;
    case Kind::kQuestion:
      peer.owes_answer = signal.subject;
      send_due(rank);
      break;
    case Kind::kNotLate:
    case Kind::kLate:
      peer.position = position;
      peer.late_for = signal.kind == Kind::kLate ? std::optional<int>(signal.subject) : std::nullopt;
      break;
    case Kind::kCall:
      has_call_ = true;
      peer.owes_presence = true;
      send_due(rank);
      break;
    case Kind::kPresent: peer.is_called = false; break;
    case Kind::kWorking:
    case Kind::kNotWorking: set_working(rank, signal.kind == Kind::kWorking); break;
  }
}

void Watchdog::handle_news(int rank, const Signal& signal) {
  const Position position{signal.round, static_cast<Phase>(signal.phase)};
  const std::string_view text(signal.text.data());
  std::string message;
  if (signal.kind == Kind::kBlamed) {
    message = text;
  } else if (signal.kind == Kind::kFailed) {
    message = fmt::format("{} has failed in round {} ({}): {}", place_of(transport_, signal.subject), position.round,
                          phase_name(position.phase), text);
  } else if (signal.subject == rank_) {
    message = fmt::format(
        "the other processes count this one ({}) as dead: they did not hear from it for {:.1f} s. Was it stopped, or "
        "its network cut off?",
        place_of(transport_, rank_), signal.silent_seconds);
  } else {
    message = describe_dead(signal.subject, position, signal.silent_seconds);
  }
  fail_with(message, signal, rank);
}

// Once all have announced their shutdown, no rank starts anything. Each sends its last message and waits for those of
// all others.
void Watchdog::begin_last_messages() {
  if (!announced_shutdown_) return;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !peer(rank).shutdown_at) return;
  }
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    peer(rank).owes_last = true;
    // The ranks that have watched it until now may end before this one.
    peer(rank).watched = true;
    peer(rank).last_heard = now_;
  }
}

}  // namespace arbalest::engine::process
