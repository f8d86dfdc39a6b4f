// Decides when the model is added to the moving average, and with which weight. Both depend on progress, not on rounds,
// so the number of learners makes no difference. The average is evaluated and saved, and never fed back into training.
#pragma once

#include <optional>

namespace arbalest::scheduler {

struct MovingAverageOptions {
  // Exponential average: age, in epochs, at which a state counts 1/e of the present one. 0: no average.
  double epochs = 0.0;
  // Polyak's average: the plain mean of all states from this epoch on; before that epoch, the model itself. Cannot be
  // combined with `epochs`.
  std::optional<double> mean_from_epoch = {};
};

class MovingAverage {
 public:
  explicit MovingAverage(const MovingAverageOptions& options) : options_(options) {}

  // Whether enough progress has passed to add the model. Adding it in every round would cost a pass over the weights
  // each time, and successive states differ little. An evaluation always adds it.
  bool is_due(double progress) const;

  // Returns the weight of the model at `progress`, which represents all states since the last call.
  //   exponential: of an average over the time since the start of the run, in which a state's weight is exp(-its age /
  //                epochs)
  //   Polyak's:    of the mean over the time since mean_from_epoch (Polyak and Juditsky 1992)
  // The first call returns 1; a second call at the same progress returns 0.
  float take(double progress);

  // Whether an average is kept; otherwise every weight is 1.
  bool exists() const noexcept { return options_.epochs > 0.0 || options_.mean_from_epoch.has_value(); }
  // Progress at the last call of take(), and the way to go on from there.
  double last() const noexcept { return last_; }
  void continue_from(double last) noexcept { last_ = last; }

 private:
  static constexpr double kSamples = 64.0;  // samples per `epochs`, or per epoch

  MovingAverageOptions options_;
  double last_ = 0.0;  // progress at the last call of take()
};

}  // namespace arbalest::scheduler
