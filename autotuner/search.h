// Decides which count to try next and which to choose: pure functions of the measurements.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "autotuner/curve.h"

namespace arbalest::autotuner {

struct SearchOptions {
  // Fraction of goodput. A smaller gain does not justify more learners or a change of the count.
  double hysteresis = 0.03;
  // Fraction of goodput that may stay hidden between two counts. The target is 5 %; 3 % allows for the bounds' errors.
  double tolerance = 0.03;
  Objective objective{};  // defines goodput; by default the throughput
};

enum class Extent {
  kEverywhere,  // tries every octave that could be best, so that a second peak of that width is found
  kAround,      // climbs: tries the octaves next to the best so far
};

enum class ProbeKind { kAbove, kBelow, kLowest, kBeside, kBetween };

struct Probe {
  ProbeKind kind = ProbeKind::kAbove;
  Configuration configuration;
  double promise = 0.0;  // kBetween: upper bound of the goodput that could be found
};

// Counts of `space` one octave apart, or the next smaller count that exists, from its first to its last.
std::vector<Configuration> octaves_of(std::span<const Configuration> space);
// As above, but with octaves upwards and downwards from `through`, a count of the space.
std::vector<Configuration> octaves_of(std::span<const Configuration> space, const Configuration& through);

// Limit of probes in a search: 6 for up to 16 learners, 8 for up to 32, one more per further octave.
int probe_limit(std::span<const Configuration> space);

// Returns the next count worth a probe; none if nothing can beat the best by more than the tolerance.
//
// Extent::kEverywhere: octaves upwards from the measured counts, while a higher count could beat the best if its
// learners did not slow each other down further. Then octaves downwards, while a lower count could beat the best if its
// learners sped up in proportion. The first octave (1 learner) is tried only if the second is not worse than the third,
// because one learner is the slowest to measure. Extent::kAround: the octaves next to the best. Afterwards both try the
// count between two measured ones that can hide most.
//
// `space`: counts that may be tried, without those that did not fit in memory. `octaves`: octaves_of() the space before
// such counts were removed. `curve`: the measurements, at least that of the count at which the search began.
std::optional<Probe> next_probe(std::span<const Configuration> space, std::span<const Configuration> octaves,
                                const Curve& curve, Extent extent, const SearchOptions& options);

// Relative standard error of the ratio of two points' goodputs, from their rates and efficiencies.
double error_between(const Point& a, const Point& b, const SearchOptions& options);

// Returns the point with the fewest learners that is surely (by one standard error) within the hysteresis of the best.
// With `present`, a count of the curve, returns that count unless the best is surely better by more than the
// hysteresis.
Point choose(const Curve& curve, std::optional<int> present, const SearchOptions& options);

}  // namespace arbalest::autotuner
