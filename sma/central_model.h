// The central model z on every device, and the passes that combine the replicas' vectors on the devices' averaging
// streams. Its users decide what the vectors mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/bfloat16.h"
#include "engine/base/element_range.h"
#include "engine/collective.h"
#include "engine/device.h"
#include "engine/passes/averaging.h"

namespace arbalest::sma {

// Bytes of a vector of float32.
inline std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

// The result of one averaging, in host memory.
struct AveragingResult {
  float non_finite = 0.0F;        // number of elements that are not finite; if any, z was kept
  float squared_distance = 0.0F;  // sum over learners of |w_j - z|^2 before the step, without statistics
  float squared_sum = 0.0F;       // |sum over learners of (w_j - z)|^2, likewise
};

struct AveragingTicket {
  engine::Event done;
  const AveragingResult* result = nullptr;  // valid until result_slots more averagings were enqueued
};

// Vectors that a scheme needs in addition to z.
struct CentralVectors {
  bool velocity = false;        // for Nesterov's rule
  bool mean = false;            // the replicas' mean, if it is not z
  bool gradient = false;        // the mean of their gradients
  std::size_t state_slots = 0;  // number of means of the optimizers' vectors
};

struct CentralSizes {
  std::int64_t elements = 0;    // of every flat vector, without the frozen ones
  std::int64_t statistics = 0;  // part of `elements`, at the end
  std::int64_t frozen = 0;      // behind `elements`: set with the central model, never averaged
  // Trainable elements of split layers: each device has its own there, which nobody sums over devices.
  std::vector<engine::ElementRange> parts = {};
  std::int64_t trainable() const { return elements - statistics; }
  // The trainable elements that all devices have alike.
  std::vector<engine::ElementRange> compared_ranges() const;
};

// The vectors of one device's replicas; [elements] each, state [trainable].
struct ReplicaVectors {
  std::vector<const float*> weights;
  std::vector<const float*> gradients;
  std::vector<std::vector<const float*>> state = {};  // by slot, then replica
};

// Each device keeps a copy of z in two buffers. Round t reads z^t in one and writes z^{t+1} over z^{t-1} in the other,
// so learners read z^t while its successor is computed. All copies are bit-identical.
class CentralModel {
 public:
  // Returns the bytes that a central model takes of each device's memory.
  static std::size_t device_bytes(const engine::Device& device, const CentralSizes& sizes,
                                  const CentralVectors& vectors);

  // z starts as zero. The devices and the collective (one rank per device) must outlive it.
  CentralModel(std::span<engine::Device* const> devices, const CentralSizes& sizes, const CentralVectors& vectors,
               engine::Collective& collective, int result_slots);

  std::size_t devices() const noexcept { return devices_.size(); }
  // Whether z has copies on other devices, of this process or of others.
  bool has_copies() const noexcept { return !is_alone(); }
  engine::Stream& stream(std::size_t device) const { return *devices_[device].stream; }
  std::span<engine::Stream* const> streams() const noexcept { return streams_; }
  // Sets the vectors of this process's replicas, by device; their addresses must not change afterwards. `all`: number
  // of the replicas of all processes.
  void set_replicas(std::vector<ReplicaVectors> replicas, int all);

  // The two buffers of z on a device, [elements + frozen] float32 each, and the index of the buffer that holds z.
  float* central(std::size_t device, int parity) const { return devices_[device].central[parity].as<float>(); }
  int parity() const noexcept { return parity_; }
  float* present(std::size_t device) const { return central(device, parity_); }
  float* other(std::size_t device) const { return central(device, 1 - parity_); }
  // These are null unless the constructor's CentralVectors asked for them.
  float* mean(std::size_t device) const { return devices_[device].mean.as<float>(); }
  float* gradient(std::size_t device) const { return devices_[device].gradient.as<float>(); }
  float* velocity(std::size_t device) const { return devices_[device].velocity.as<float>(); }
  float* state(std::size_t device, std::size_t slot) const;

  // Sets the device's copy of z to `weights`: [elements + frozen], in host memory or on the device, and zeroes the
  // momentum. Call it for every device, with equal values, at a point without work under way. Blocks the host.
  void set(std::size_t device, const float* weights);
  // Enqueues, on each averaging stream, that z becomes models[d], [elements], and that the momentum becomes zero.
  // Returns by device the event after which z may be copied.
  std::span<const engine::Event> restart(std::span<const float* const> models);

  // Enqueues a wait for the device's events on each averaging stream.
  void wait_for(std::span<const std::vector<engine::Event>> ready, const char* label);
  // Returns one event per device, after all work enqueued on its averaging stream. Valid until the next call.
  std::span<const engine::Event> record();

  // Moves z: S = sum_j (w_j - z) over all devices; z moves by `step` and `momentum`; its statistics become the
  // replicas' mean. Returns, by device, the event after which the replicas' weights may change; z^{t+1} is complete
  // later.
  std::span<const engine::Event> average(float step, float momentum, bool nesterov);
  // Returns the ticket of the last averaging.
  AveragingTicket ticket() const { return ticket_; }

  // Sets target(d) := base(d) + (1/k) sum_j (w_j - base(d)) on every device. The bases of all devices must be equal,
  // and no target may be a base or a replica. Returns as average() does.
  template <typename Base, typename Target>
  std::span<const engine::Event> average_replicas(const Base& base, const Target& target) {
    for (std::size_t d = 0; d < devices(); ++d) set_operands(d, base(d), target(d));
    return average_operands({.step = mean_factor(), .mean_factor = mean_factor()});
  }

  // Sets gradient(d)[begin, end) to the mean of all replicas' gradients there. A gradient of CentralSizes::parts is a
  // sum over the mini-batches of all replicas already; it is divided by their number.
  void average_gradients(std::int64_t begin, std::int64_t end);
  // Sets state(d, slot) to the mean of all replicas' optimizer vectors.
  void average_state();

  // Blocks the host until `event`, which may follow an averaging, has passed: Collective::wait.
  void wait(const engine::Event& event);
  // Blocks the host until all averaging streams have finished. Must be called before learners' streams are drained:
  // those streams would wait forever for a device that has failed.
  void drain() noexcept;

  // Bytes of the elements that averaging works on, and of a whole vector.
  std::size_t vector_bytes() const { return static_cast<std::size_t>(sizes_.elements) * sizeof(float); }
  std::size_t whole_bytes() const { return static_cast<std::size_t>(sizes_.elements + sizes_.frozen) * sizeof(float); }
  const CentralSizes& sizes() const noexcept { return sizes_; }

 private:
  struct PerDevice {
    engine::Device* device = nullptr;
    engine::Buffer central[2];
    engine::Buffer sum;  // [elements + kAveragingTail]; a single device uses only its tail
    engine::Buffer velocity;
    engine::Buffer mean;
    engine::Buffer gradient;
    engine::Buffer state;  // [slots, trainable]
    ReplicaVectors replicas;
    const float* base = nullptr;  // base of the averaging that is being enqueued
    float* target = nullptr;
    std::unique_ptr<engine::Stream> stream;
  };

  float mean_factor() const { return 1.0F / static_cast<float>(count_); }
  // Whether one device has all replicas, so that nothing is summed over devices.
  bool is_alone() const noexcept { return devices_.size() == 1 && !collective_.spans_processes(); }
  void set_operands(std::size_t device, const float* base, float* target);
  std::span<const engine::Event> average_operands(const engine::CentralStep& by);
  void average_alone(const engine::CentralStep& by);
  void average_together(const engine::CentralStep& by);
  // Sets mean_of(entry) to the mean of vectors_of(entry)[offset, offset + elements) over all replicas. If `is_part`,
  // the sums of other devices are not added.
  template <typename Vectors, typename Mean>
  void average_vectors(const Vectors& vectors_of, const Mean& mean_of, std::int64_t offset, std::int64_t elements,
                       bool is_part, const char* label);

  CentralSizes sizes_;
  engine::Collective& collective_;
  int result_slots_;
  engine::Buffer results_;  // host: AveragingResult [result_slots]; streams of devices_ write it until they end
  std::vector<PerDevice> devices_;
  std::vector<engine::Stream*> streams_;       // the averaging streams of devices_
  std::vector<engine::CollectivePart> parts_;  // parts of the all-reduce that is being enqueued; kept for their memory
  std::vector<engine::Event> events_;          // by device, of the last call
  int count_ = 0;                              // number of replicas on all devices of all processes
  AveragingTicket ticket_;
  std::uint64_t rounds_ = 0;
  int parity_ = 0;
};

}  // namespace arbalest::sma
