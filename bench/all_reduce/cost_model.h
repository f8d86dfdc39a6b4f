// Predicts the seconds of an all-reduce from the cost of a message and of an addition.
//
// A message of n bytes takes alpha + n beta, and n bytes are added in n gamma. A rank sends one message and receives
// one at the same time. With P ranks, P' the largest power of two that is not above P, and L = log2 P rounded up:
//
//   ring, pairwise    2 (P - 1) alpha + 2 (P - 1) / P n beta + (P - 1) / P n gamma
//   halving-doubling  2 log2 P' alpha + 2 (P' - 1) / P' n beta + (P' - 1) / P' n gamma
//                     and, if P' < P, 2 (alpha + n beta) + n gamma
//   binomial tree     2 L (alpha + n beta) + L n gamma
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.)
#pragma once

#include <cstddef>
#include <span>

namespace arbalest::bench {

struct LinkCosts {
  double latency_seconds = 0.0;   // alpha
  double seconds_per_byte = 0.0;  // beta
};

struct MessageTime {
  double bytes = 0.0;
  double seconds = 0.0;  // greater than 0
};

// Fits alpha and beta with least squares of the relative error. Neither is negative. Needs messages of two sizes.
LinkCosts fit_link(std::span<const MessageTime> messages);

enum class Algorithm { kPairwise, kRing, kHalvingDoubling, kBinomialTree };

// gamma: seconds to add a byte.
double predicted_seconds(Algorithm algorithm, const LinkCosts& link, double gamma, int ranks, std::size_t elements);

}  // namespace arbalest::bench
