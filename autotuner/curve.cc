#include "autotuner/curve.h"

#include <algorithm>
#include <cmath>

namespace arbalest::autotuner {

namespace {

// A point on logarithmic axes: octaves of learners and of examples per second.
struct Place {
  double x = 0.0;
  double y = 0.0;
};

double octaves(int learners) { return std::log2(static_cast<double>(learners)); }
Place place(const Point& point) { return {octaves(point.configuration.learners), std::log2(point.rate)}; }
double slope(const Place& a, const Place& b) { return (b.y - a.y) / (b.x - a.x); }

std::span<const Configuration> between(std::span<const Configuration> space, int above, int below) {
  const auto first = std::ranges::upper_bound(space, above, {}, &Configuration::learners);
  const auto last = std::ranges::lower_bound(space, below, {}, &Configuration::learners);
  return first < last ? std::span(first, last) : std::span<const Configuration>();
}

// Whether point i is lower than both neighbors by more than noise. A chord that ends in a valley bounds nothing
// reliably, because the true minimum may be anywhere.
bool is_valley(std::span<const Point> points, std::size_t i) {
  if (i == 0 || i + 1 >= points.size()) return false;
  constexpr double kClearly = 0.97;
  return points[i].rate < kClearly * std::min(points[i - 1].rate, points[i + 1].rate);
}

// Slope of the line through point i that bounds the curve to its right; `inner`: slope of the chord to its right.
double slope_from_left(std::span<const Point> points, std::size_t i, double inner) {
  if (i > 0 && !is_valley(points, i - 1)) {
    const double outer = slope(place(points[i - 1]), place(points[i]));
    if (outer >= inner) return std::min(outer, std::max(1.0, inner));
  }
  return std::max(1.0, inner);
}

// Slope of the line through point i that bounds the curve to its left; `inner`: slope of the chord to its left.
double slope_from_right(std::span<const Point> points, std::size_t i, double inner) {
  if (i + 1 < points.size() && !is_valley(points, i + 1)) {
    const double outer = slope(place(points[i]), place(points[i + 1]));
    if (outer <= inner) return outer;
  }
  return std::min(-1.0, inner);
}

}  // namespace

void Curve::set(const Point& point) {
  const auto learners = [](const Point& p) { return p.configuration.learners; };
  const auto at = std::ranges::lower_bound(points_, point.configuration.learners, {}, learners);
  if (at != points_.end() && learners(*at) == point.configuration.learners) {
    *at = point;
  } else {
    points_.insert(at, point);
  }
}

void Curve::drop_if(const std::function<bool(const Configuration&)>& is_lost) {
  std::erase_if(points_, [&](const Point& point) { return is_lost(point.configuration); });
}

const Point* Curve::find(int learners) const {
  const auto at = std::ranges::find(points_, learners, [](const Point& p) { return p.configuration.learners; });
  return at == points_.end() ? nullptr : &*at;
}

const Point& Curve::best(const Objective& objective) const {
  return *std::ranges::max_element(
      points_, {}, [&](const Point& point) { return objective.goodput(point.configuration, point.rate); });
}

std::optional<Promise> promise_right_of(const Curve& curve, std::size_t left, std::span<const Configuration> space,
                                        const Objective& objective) {
  const std::span<const Point> points = curve.points();
  const Place a = place(points[left]);
  if (left + 1 == points.size()) {
    const auto hidden = between(space, points[left].configuration.learners, space.back().learners + 1);
    if (hidden.empty()) return std::nullopt;
    const double rise = left == 0 ? 1.0 : std::clamp(slope(place(points[left - 1]), a), 0.0, 1.0);
    Promise most;
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      const double rate = std::exp2(a.y + rise * (octaves(hidden[i].learners) - a.x));
      const double goodput = objective.goodput(hidden[i], rate);
      if (goodput >= most.goodput) most = {hidden[i / 2], goodput};
    }
    return most;
  }
  const Place b = place(points[left + 1]);
  const double inner = slope(a, b);
  const double rise = slope_from_left(points, left, inner);
  const double fall = slope_from_right(points, left + 1, inner);
  std::optional<Promise> best;
  for (const Configuration& count :
       between(space, points[left].configuration.learners, points[left + 1].configuration.learners)) {
    const double x = octaves(count.learners);
    const double rate = std::exp2(std::min(a.y + rise * (x - a.x), b.y + fall * (x - b.x)));
    const double goodput = objective.goodput(count, rate);
    if (!best || goodput > best->goodput) best = Promise{count, goodput};
  }
  return best;
}

}  // namespace arbalest::autotuner
