// When an exponential moving average takes in the central model, and with which weight. Both go by progress and not by
// rounds, so that the number of learners makes no difference.
#pragma once

namespace arbalest::scheduler {

class MovingAverage {
 public:
  // `epochs`: how far back it remembers; a state that is so old counts 1/e of a present one. 0: no further than now.
  explicit MovingAverage(double epochs) : epochs_(epochs) {}

  // Whether the model has gone on for long enough to be taken in, unless an evaluation wants it sooner. Each round
  // would cost a pass over the weights, and neighboring states are much alike.
  bool is_due(double progress) const { return epochs_ > 0.0 && progress - last_ >= epochs_ / kSamples; }

  // The weight of the model after so many epochs, which stands for all states since the last one that was taken in: of
  // an average over the time since the start of the run, in which a state's weight is exp(-its age / epochs). 1 for the
  // first one, 0 for the same one again.
  float take(double progress);

 private:
  static constexpr double kSamples = 64.0;  // of `epochs`

  double epochs_;
  double last_ = 0.0;  // progress of the state that was taken in last
};

}  // namespace arbalest::scheduler
