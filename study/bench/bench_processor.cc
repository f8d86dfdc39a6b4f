#include "study/bench/bench_processor.h"

namespace arbalest::jobs {

void ProcessorWatch::look(pid_t process) {
  constexpr std::chrono::milliseconds kInterval{250};
  const auto now = std::chrono::steady_clock::now();
  if (!clock_) {
    clock_ = std::make_unique<engine::host::ProcessorClock>(engine::host::allowed_cores(), process);
    next_ = now + kInterval;
    return;
  }
  if (now < next_) return;
  next_ = now + kInterval;
  const engine::host::ProcessorTime time = clock_->take();
  if (!time.is_known) return;
  if (!seen_) seen_.emplace();
  seen_->seconds += time.seconds;
  seen_->used += time.used;
  seen_->lost += time.lost;
}

std::optional<BenchProcessor> ProcessorWatch::whole(double used_seconds) const {
  if (!seen_ || seen_->used <= 0.0 || used_seconds <= 0.0) return std::nullopt;
  const double factor = used_seconds / seen_->used;
  return BenchProcessor{seen_->seconds * factor, used_seconds, seen_->lost * factor};
}

nlohmann::ordered_json to_json(const std::optional<BenchProcessor>& processor) {
  if (!processor) return nullptr;
  return {{"seconds", processor->seconds},
          {"used", processor->used},
          {"lost", processor->lost},
          {"lost_share", processor->lost_share()}};
}

std::optional<BenchProcessor> processor_from(const nlohmann::ordered_json& json) {
  if (!json.is_object()) return std::nullopt;
  return BenchProcessor{json.at("seconds"), json.at("used"), json.at("lost")};
}

}  // namespace arbalest::jobs
