// Synchronous model averaging over the flat weight vectors of all learners of all devices (design: "Synchronous model
// averaging"; Koliousis et al., VLDB 2019, algorithm 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/bfloat16.h"
#include "engine/collective.h"
#include "engine/device.h"
#include "sma/options.h"

namespace arbalest::sma {

// What one averaging reports, in host memory.
struct AveragingResult {
  float non_finite = 0.0F;        // weights that were not finite; if any, z was kept
  float squared_distance = 0.0F;  // sum over learners of |w_j - z|^2, before the step, without statistics
};

struct AveragingTicket {
  engine::Event done;
  const AveragingResult* result = nullptr;  // valid until result_slots more rounds were enqueued
};

// Each device keeps a copy of the central model z in two buffers: round t reads z^t in one and writes z^{t+1} over
// z^{t-1} in the other, so learners read z^t while its successor is computed. All copies are bit-identical.
class Averager {
 public:
  // What one takes of each device's memory.
  static std::size_t device_bytes(const engine::Device& device, std::int64_t elements);

  // `elements`: of every flat vector; the last `statistics` of them are running statistics. z starts as zero; see
  // set_central. The devices and the collective (one rank per device) must outlive it.
  Averager(const Options& options, std::span<engine::Device* const> devices, std::int64_t elements,
           std::int64_t statistics, engine::Collective& collective, int result_slots);

  // The two buffers of z on a device, [elements] float32 each, for the recordings of its learners.
  const float* central_buffer(int device, int parity) const;
  // Which of the two holds the present z.
  int parity() const noexcept { return parity_; }

  // The weights of each device's learners, which must not change place from here on.
  void set_replicas(std::vector<std::vector<const float*>> replicas);
  // z := weights on every device ([elements] of host-readable memory there). Blocks the host; before the first round.
  void set_central(int device, const float* weights);

  // Enqueues one round: S = sum_j (w_j - z^t) over all devices, z^{t+1} = z^t + alpha S + mu (z^t - z^{t-1}), and of
  // statistics the replicas' mean.
  //   ready[d][j]: the weights of learner j of device d are those to be averaged.
  // Stream ordering: on the devices' averaging streams; the host does not block. Returns, by device, the event after
  // which the weights may change: the update of each learner waits for it, reads z^t in central_buffer(d, the parity
  // before this call), and must have ended before the next round's ready event.
  std::span<const engine::Event> average(std::span<const std::vector<engine::Event>> ready, float alpha);
  // Of the last average().
  AveragingTicket ticket() const { return ticket_; }

  // z^{t-1} := z^t, after every learner's last update (`updated`, by device and learner), so that the central momentum
  // starts anew. Returns, by device, the event after which learners may copy z.
  std::span<const engine::Event> restart(std::span<const std::vector<engine::Event>> updated);

  // Takes the present z into `average` (engine/ops/moving_average.h; a weight of 1 makes it a copy) and, unless it is
  // null, rounds that to `rounded` ([elements] on the device each); returns the event after which it is there. Every
  // reader of z other than the learners' updates reads such a vector.
  engine::Event move_average(int device, float* average, float weight, engine::BFloat16* rounded);

  // Blocks the host until `event`, which may lie behind an averaging, has passed: Collective::wait.
  void wait(const engine::Event& event);
  // Blocks the host until all averaging streams have done what is enqueued. To be called before learners' streams are
  // drained, which would wait forever for a device that has failed.
  void drain() noexcept;

 private:
  struct PerDevice {
    engine::Device* device = nullptr;
    engine::Buffer central[2];
    engine::Buffer sum;  // [elements + kAveragingTail]; one device alone uses its tail only
    std::vector<const float*> replicas;
    std::unique_ptr<engine::Stream> stream;
  };

  void average_alone(float alpha);
  void average_together(float alpha);
  PerDevice& at(int device) { return devices_[static_cast<std::size_t>(device)]; }
  std::size_t vector_bytes() const { return static_cast<std::size_t>(elements_) * sizeof(float); }

  Options options_;
  std::int64_t elements_;
  std::int64_t statistics_;
  float mean_factor_ = 0.0F;  // 1 / all replicas
  engine::Collective& collective_;
  int result_slots_;
  engine::Buffer results_;  // host: AveragingResult [result_slots]; streams of devices_ write it until they end
  std::vector<PerDevice> devices_;
  std::vector<engine::CollectivePart> parts_;  // by device: its sum
  std::vector<engine::Event> events_;          // by device, of the last call
  AveragingTicket ticket_;
  std::uint64_t rounds_ = 0;
  int parity_ = 0;
};

}  // namespace arbalest::sma
