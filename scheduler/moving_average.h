// When an average over time takes in the model, and with which weight. Both go by progress and not by rounds, so that
// the number of learners makes no difference. The average is evaluated and saved, and never fed back.
#pragma once

#include <optional>

namespace arbalest::scheduler {

struct MovingAverageOptions {
  // Exponential: how far back it remembers; a state that is so old counts 1/e of a present one. 0: no further than now.
  double epochs = 0.0;
  // Polyak's: the plain mean of all states from this epoch on; before it the model as it is. Not together with
  // `epochs`.
  std::optional<double> mean_from_epoch = {};
};

class MovingAverage {
 public:
  explicit MovingAverage(const MovingAverageOptions& options) : options_(options) {}

  // Whether the model has gone on for long enough to be taken in, unless an evaluation wants it sooner. Each round
  // would cost a pass over the weights, and neighboring states are much alike.
  bool is_due(double progress) const;

  // The weight of the model after so many epochs, which stands for all states since the last one that was taken in.
  //   exponential: of an average over the time since the start of the run, in which a state's weight is exp(-its age /
  //                epochs)
  //   Polyak's:    of the mean over the time since mean_from_epoch (Polyak and Juditsky 1992)
  // 1 for the first one, 0 for the same one again.
  float take(double progress);

 private:
  static constexpr double kSamples = 64.0;  // of `epochs`, or of an epoch

  MovingAverageOptions options_;
  double last_ = 0.0;  // progress of the state that was taken in last
};

}  // namespace arbalest::scheduler
