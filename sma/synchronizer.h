// The vectors and streams that keep the replicas of a run together: the central model z, a server, and measurements. It
// sees replicas as flat vectors, and knows nothing of learners. What is done with all this in which order, the rounds
// decide (scheduler/rounds).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sma/central_model.h"
#include "sma/copy_comparison.h"
#include "sma/gradient_variance.h"
#include "sma/options.h"
#include "sma/parameter_server.h"
#include "sma/shards.h"

namespace arbalest::sma {

// The schemes and numbers of learners that a run may use.
struct SynchronizerNeeds {
  std::vector<Options> schemes;  // the first scheme and those that the run may switch to
  int most_learners = 1;         // over all devices of all processes
  bool may_resize = false;
  std::size_t state_slots = 0;   // number of the optimizer's vectors
  engine::UpdateRule rule = {};  // the optimizer, and the ranges of the flat vectors: for a server
  std::span<const engine::UpdateRange> ranges = {};
  bool measures_gradients = false;
  bool compares_copies = false;
  int process = 0;  // of `processes`, each of which serves a shard of the server's weights
  int processes = 1;
};

class Synchronizer {
 public:
  // Memory of each of `devices`, which are those of this process.
  static std::vector<std::size_t> device_bytes(const SynchronizerNeeds& needs, std::span<engine::Device* const> devices,
                                               const CentralSizes& sizes);
  // Whether some scheme of the run has a server.
  static bool has_server(const SynchronizerNeeds& needs);

  // The devices and the collective (one rank per device) must outlive it. result_slots: the result of an averaging
  // stays valid until this many more are enqueued; also the limit of measurements that are not taken yet.
  Synchronizer(const SynchronizerNeeds& needs, std::span<engine::Device* const> devices, const CentralSizes& sizes,
               engine::Collective& collective, int result_slots);

  // Sets the vectors of this process's replicas, by device; their addresses must not change until the next call.
  // `all`: number of the replicas of all processes. No work may be under way.
  void set_replicas(std::vector<ReplicaVectors> replicas, int all);

  // A run that always has one learner, whose weights its scheme leaves alone, has no central model.
  bool has_central() const noexcept { return central_.has_value(); }
  CentralModel& central() { return *central_; }
  const CentralModel& central() const { return *central_; }

  // The server of this process's shard of z on the first device, which works on that device's averaging stream. Another
  // process's elements of z are stale until gather_shards() (scheduler/shards).
  ParameterServer& server() { return *server_; }
  const Shards& shards() const noexcept { return shards_; }

  // Measurements of the gradients' variance (SynchronizerNeeds::measures_gradients); null: there are none.
  GradientVariance* variance() { return variance_ ? &*variance_ : nullptr; }
  // Returns the oldest measurement that was not taken; blocks the host until it is complete.
  VarianceSample take_variance() {
    return variance_->take([this](const engine::Event& event) { central_->wait(event); });
  }

  // Comparisons of what all devices must hold alike (SynchronizerNeeds::compares_copies); null: there are none.
  CopyComparison* comparison() { return comparison_ ? &*comparison_ : nullptr; }
  // Enqueues a comparison of the devices' copies of z, with running statistics and frozen elements. Returns false if
  // there is nothing to compare.
  bool compare_central();
  // Returns the hashes of the oldest comparison that was not taken, by device; valid until the next call. Blocks the
  // host until they are complete.
  const CopyHashes& take_comparison() {
    return comparison_->take([this](const engine::Event& event) { central_->wait(event); });
  }
  // Forgets measurements and comparisons that were not taken. The streams must be idle.
  void forget();

  // Blocks the host until all work enqueued on the averaging streams has ended. Throws its first error.
  void settle();
  // Blocks the host until the averaging streams have finished. Call it before the learners' streams are
  // drained: if a device has failed, they would wait forever for an averaging.
  void drain() noexcept;

 private:
  std::optional<CentralModel> central_;
  Shards shards_;
  std::optional<ParameterServer> server_;
  std::optional<GradientVariance> variance_;
  std::optional<CopyComparison> comparison_;
  std::vector<std::vector<const float*>> copies_;  // by device: vectors of the comparison that is being enqueued
};

}  // namespace arbalest::sma
