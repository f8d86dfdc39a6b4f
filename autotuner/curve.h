// Throughput over the number of learners, as far as it is measured, and how much more may lie between.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "autotuner/configuration.h"
#include "autotuner/goodput.h"

namespace arbalest::autotuner {

struct Point {
  Configuration configuration;
  double rate = 0.0;   // examples per second, the median of the windows
  double error = 0.0;  // its relative standard error
  int windows = 0;
};

class Curve {
 public:
  // Replaces the point of the same count.
  void set(const Point& point);
  // Forgets the counts that are lost.
  void drop_if(const std::function<bool(const Configuration&)>& is_lost);
  std::span<const Point> points() const noexcept { return points_; }  // ascending in learners
  bool empty() const noexcept { return points_.empty(); }
  // nullptr if the count is not measured.
  const Point* find(int learners) const;
  // The point of the highest goodput: by default of the highest rate. Not of an empty curve.
  const Point& best(const Objective& objective = {}) const;

 private:
  std::vector<Point> points_;
};

// What could be found at a count that is not measured.
struct Promise {
  Configuration configuration;
  double goodput = 0.0;  // examples per second, weighted by the objective
};

// The best that the counts of `space` between points `left` and `left + 1` of the curve can hide, if returns diminish:
// on logarithmic axes the curve is taken to be concave, so that it stays below the line through the two points to the
// left and below the one through the two points to the right. Where there is no second point, or it lies in a
// valley, or the curve is not concave there, the line has the slope 1 (no learner works faster for having company) or
// -1. With `left` the last
// point: the counts up to the end of `space`, which ends below a count that did not fit in memory; the promise is what
// the most promising of them (the last, unless the objective weighs) could reach, the count the one in the middle of
// those up to it. None if there is no count between. All lines bound rates; the objective weighs the bound at each
// count.
std::optional<Promise> promise_right_of(const Curve& curve, std::size_t left, std::span<const Configuration> space,
                                        const Objective& objective = {});

}  // namespace arbalest::autotuner
