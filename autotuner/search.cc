#include "autotuner/search.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "autotuner/throughput.h"

namespace arbalest::autotuner {

namespace {

class Search {
 public:
  Search(std::span<const Configuration> space, std::span<const Configuration> octaves, const Curve& curve,
         const SearchOptions& options)
      : space_(space), octaves_(octaves), curve_(curve), options_(options) {}

  std::optional<Probe> octave_above() const {
    const Point& highest = curve_.points().back();
    const Configuration& farthest = space_.back();
    const double rate = highest.rate * farthest.learners / highest.configuration.learners;
    if (options_.objective.goodput(farthest, rate) < goodput(best())) return std::nullopt;
    for (const Configuration& octave : octaves_) {
      if (octave.learners > highest.configuration.learners && may_try(octave)) return Probe{ProbeKind::kAbove, octave};
    }
    return std::nullopt;
  }

  std::optional<Probe> octave_below() const {
    const Point& lowest = curve_.points().front();
    const Configuration& farthest = space_.front();
    const double rate = lowest.rate * lowest.configuration.learners / farthest.learners;
    if (options_.objective.goodput(farthest, rate) < goodput(best())) return std::nullopt;
    for (const Configuration& octave : octaves_ | std::views::reverse) {
      if (octave.learners >= lowest.configuration.learners || !may_try(octave)) continue;
      if (octave != octaves_.front() || curve_.points().size() == 1) return Probe{ProbeKind::kBelow, octave};
      const Point& third = curve_.points()[1];
      if (goodput(lowest) < (1.0 - options_.hysteresis) * goodput(third)) return std::nullopt;
      return Probe{ProbeKind::kLowest, octave};
    }
    return std::nullopt;
  }

  std::optional<Probe> beside_best() const {
    const int learners = best().configuration.learners;
    const auto above = std::ranges::upper_bound(octaves_, learners, {}, &Configuration::learners);
    const auto from = std::ranges::lower_bound(octaves_, learners, {}, &Configuration::learners);
    if (from != octaves_.begin() && may_try(*std::prev(from))) return Probe{ProbeKind::kBeside, *std::prev(from)};
    if (above != octaves_.end() && may_try(*above)) return Probe{ProbeKind::kBeside, *above};
    return std::nullopt;
  }

  std::optional<Probe> between(Extent extent) const {
    const Point* best = &this->best();
    std::optional<Promise> most;
    for (std::size_t left = 0; left < curve_.points().size(); ++left) {
      const bool touches_best =
          &curve_.points()[left] == best || (left + 1 < curve_.points().size() && &curve_.points()[left + 1] == best);
      if (extent == Extent::kAround && !touches_best) continue;
      const std::optional<Promise> promise = promise_right_of(curve_, left, space_, options_.objective);
      if (promise && (!most || promise->goodput > most->goodput)) most = promise;
    }
    if (!most || most->goodput <= (1.0 + options_.tolerance) * goodput(*best)) return std::nullopt;
    return Probe{ProbeKind::kBetween, most->configuration, most->goodput};
  }

 private:
  const Point& best() const { return curve_.best(options_.objective); }
  double goodput(const Point& point) const { return options_.objective.goodput(point.configuration, point.rate); }
  bool may_try(const Configuration& configuration) const {
    return std::ranges::find(space_, configuration) != space_.end() && curve_.find(configuration.learners) == nullptr;
  }

  std::span<const Configuration> space_;
  std::span<const Configuration> octaves_;
  const Curve& curve_;
  SearchOptions options_;
};

}  // namespace

std::vector<Configuration> octaves_of(std::span<const Configuration> space) { return octaves_of(space, space.front()); }

std::vector<Configuration> octaves_of(std::span<const Configuration> space, const Configuration& through) {
  std::vector<Configuration> octaves = {through};
  while (octaves.back() != space.front()) {
    const int lowest = octaves.back().learners;
    const auto half = std::ranges::lower_bound(space, (lowest + 1) / 2, {}, &Configuration::learners);
    const bool none_within = half->learners == lowest;
    octaves.push_back(none_within ? *std::prev(half) : *half);
  }
  std::ranges::reverse(octaves);
  while (octaves.back() != space.back()) {
    const int twice = 2 * octaves.back().learners;
    const auto beyond = std::ranges::upper_bound(space, twice, {}, &Configuration::learners);
    const bool none_within = std::prev(beyond)->learners == octaves.back().learners;
    octaves.push_back(none_within ? *beyond : *std::prev(beyond));
  }
  return octaves;
}

int probe_limit(std::span<const Configuration> space) {
  const int most = space.back().learners;
  if (most <= 16) return 6;
  return 8 + std::max(0, static_cast<int>(std::ceil(std::log2(most / 32.0))));
}

std::optional<Probe> next_probe(std::span<const Configuration> space, std::span<const Configuration> octaves,
                                const Curve& curve, Extent extent, const SearchOptions& options) {
  const Search search(space, octaves, curve, options);
  std::optional<Probe> wide = extent == Extent::kEverywhere ? search.octave_above() : search.beside_best();
  if (!wide && extent == Extent::kEverywhere) wide = search.octave_below();
  return wide ? wide : search.between(extent);
}

double error_between(const Point& a, const Point& b, const SearchOptions& options) {
  return combined_error(combined_error(a.error, b.error),
                        options.objective.error_between(a.configuration, b.configuration));
}

Point choose(const Curve& curve, std::optional<int> present, const SearchOptions& options) {
  const Point& best = curve.best(options.objective);
  const auto goodput = [&](const Point& p) { return options.objective.goodput(p.configuration, p.rate); };
  const auto error = [&](const Point& point) { return error_between(point, best, options); };
  if (present) {
    const Point& old = *curve.find(*present);
    if (goodput(best) * (1.0 - error(old)) <= goodput(old) * (1.0 + options.hysteresis)) return old;
  }
  for (const Point& point : curve.points()) {
    if (goodput(point) >= goodput(best) * (1.0 - options.hysteresis + error(point))) return point;
  }
  return best;
}

}  // namespace arbalest::autotuner
