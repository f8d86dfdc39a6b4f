// Which count to try next, and which to choose: pure functions of what is measured.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "autotuner/curve.h"

namespace arbalest::autotuner {

struct SearchOptions {
  double hysteresis = 0.03;  // of goodput: less is no reason to train more learners, or to change the count
  double tolerance = 0.03;   // of goodput: may stay hidden between two counts; 5 % are the aim, as both bounds err
  Objective objective{};     // says what goodput is: by default the throughput
};

enum class Extent {
  kEverywhere,  // every octave is looked at, so that a second peak of that width is found
  kAround,      // climbs: the octaves beside the best so far are looked at
};

enum class ProbeKind { kAbove, kBelow, kLowest, kBeside, kBetween };

struct Probe {
  ProbeKind kind = ProbeKind::kAbove;
  Configuration configuration;
  double promise = 0.0;  // kBetween: the most goodput that could be found
};

// The counts of `space` in steps of one octave or the next smaller that there is, from its first to its last.
std::vector<Configuration> octaves_of(std::span<const Configuration> space);
// The same upwards and downwards from `through`, a count of the space.
std::vector<Configuration> octaves_of(std::span<const Configuration> space, const Configuration& through);

// 6 for up to 16 learners, 8 for up to 32, one more for every further octave.
int probe_limit(std::span<const Configuration> space);

// The next count worth a probe, none if nothing can be better than the best by more than the tolerance.
//
// Everywhere: octaves upwards from what is measured, until even learners that slow each other down no further could not
// make up for it; then downwards, until even learners as much faster as they are fewer could not; the first (1 learner)
// only if the second is not worse than the third, as one learner is the slowest to look at. Around: the octaves beside
// the best. Then, between two measured counts, where most can hide.
//
// `space`: what may be tried, without counts that did not fit in memory; `octaves`: octaves_of() the space before such
// counts were taken out. `curve`: what is measured, at least the count that the search began with.
std::optional<Probe> next_probe(std::span<const Configuration> space, std::span<const Configuration> octaves,
                                const Curve& curve, Extent extent, const SearchOptions& options);

// Relative standard error of the goodput of `a` over that of `b`, from their rates and efficiencies.
double error_between(const Point& a, const Point& b, const SearchOptions& options);

// The fewest learners that are surely (by one standard error) within the hysteresis of the best. With `present`, a
// count of the curve: that, unless the best is surely better by more than the hysteresis.
Point choose(const Curve& curve, std::optional<int> present, const SearchOptions& options);

}  // namespace arbalest::autotuner
