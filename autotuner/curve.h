// Measured throughput by number of learners, and a bound on how much better unmeasured numbers may be.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "autotuner/configuration.h"
#include "autotuner/goodput.h"
#include "autotuner/throughput.h"

namespace arbalest::autotuner {

struct Point {
  Configuration configuration;
  double rate = 0.0;   // examples per second, the median of the windows
  double error = 0.0;  // relative standard error of the rate
  int windows = 0;
  std::vector<Window> measurements{};  // the windows that a search measured in its probe
};

class Curve {
 public:
  // Adds a point; replaces the point with the same count.
  void set(const Point& point);
  // Removes the points whose counts are lost.
  void drop_if(const std::function<bool(const Configuration&)>& is_lost);
  std::span<const Point> points() const noexcept { return points_; }  // ascending in learners
  bool empty() const noexcept { return points_.empty(); }
  // Returns nullptr if the count is not measured.
  const Point* find(int learners) const;
  // Returns the point with the highest goodput (by default the highest rate). The curve must not be empty.
  const Point& best(const Objective& objective = {}) const;

 private:
  std::vector<Point> points_;
};

// A bound on what an unmeasured count could reach.
struct Promise {
  Configuration configuration;
  double goodput = 0.0;  // examples per second, weighted by the objective
};

// Bounds the best goodput of the counts in `space` between points `left` and `left + 1` of the curve; none if there is
// no count between them.
//
// The bound assumes diminishing returns: on logarithmic axes the curve is concave, so it stays below the line through
// the two points to the left and below the line through the two points to the right. If a line's second point is
// missing or in a valley, or if the curve is not concave there, the line gets the slope 1 (no learner gets faster when
// others are added) or -1. All lines bound rates; the objective weighs the bound at each count.
//
// If `left` is the last point, the counts are those up to the end of `space`, which ends below the first count that did
// not fit in memory. The promise is then the bound of the most promising count (without weights the last one). The
// count to try is the middle one of the counts up to it.
std::optional<Promise> promise_right_of(const Curve& curve, std::size_t left, std::span<const Configuration> space,
                                        const Objective& objective = {});

}  // namespace arbalest::autotuner
