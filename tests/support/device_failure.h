// Failures of devices that compute a split model together.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "engine/base/error.h"
#include "engine/cpu/exchange/device_exchange.h"
#include "engine/stream.h"
#include "engine/stream_observer.h"
#include "learners/learner_pool.h"
#include "tests/support/latch.h"

namespace arbalest::tests {

inline constexpr const char* kDeviceFailure = "the device has failed";

// Makes one task of one stream fail.
class FailingDevice final : public engine::StreamObserver {
 public:
  // From now on the stream passes `passing` tasks with this label, and the next one fails. Call it once, before the
  // stream gets such tasks.
  void fail(const engine::Stream& stream, const char* label, int passing = 0) {
    label_ = label;
    passing_ = passing;
    stream_.store(&stream);
  }

  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override {
    if (stream_.load() != &stream || task.label != label_) return;
    if (passing_-- == 0) engine::fail(engine::ErrorKind::kDevice, "{}", kDeviceFailure);
  }
  void after_task(const engine::Stream&, const engine::TaskInfo&) override {}

 private:
  std::string label_;
  int passing_ = 0;
  std::atomic<const engine::Stream*> stream_ = nullptr;  // set last
};

// Whether the exchanges of these CPU devices have ended: no learner's stream stays in one, and this thread enters one
// as rank 0, alone, and need not wait for the others.
inline bool is_broken_up(std::span<const std::unique_ptr<learners::LearnerPool>> pools) {
  engine::ExchangeGroup& group = *pools.front()->exchange();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (const auto& pool : pools) {
    const engine::Event idle = pool->learners().front()->stream().record();
    while (!idle.is_complete()) {
      if (std::chrono::steady_clock::now() < until) {
        std::this_thread::yield();
        continue;
      }
      group.break_up();  // lest the stream wait forever
      return false;
    }
  }
  const auto enter = [&] {
    try {
      static_cast<engine::cpu::DeviceExchange&>(group).exchange(0, {}, 1, [](const auto&) {});
    } catch (const engine::Error& error) {
      return error.kind() == engine::ErrorKind::kPeer;
    }
    return false;
  };
  std::future<bool> entered = std::async(std::launch::async, enter);
  const bool is_over = entered.wait_for(kPatience) == std::future_status::ready;
  if (!is_over) group.break_up();  // lest the thread wait forever
  return entered.get() && is_over;
}

}  // namespace arbalest::tests
