#include "bench/all_reduce/cost_model.h"

#include <bit>
#include <cmath>

#include "engine/error.h"

namespace arbalest::bench {

namespace {

// Minimizes the sum of (x / t - 1)^2 for x proportional to `value`.
template <typename Value>
double fit_one(std::span<const MessageTime> messages, const Value& value) {
  double numerator = 0.0;
  double denominator = 0.0;
  for (const MessageTime& message : messages) {
    const double share = value(message) / message.seconds;
    numerator += share;
    denominator += share * share;
  }
  return numerator / denominator;
}

double error_of(std::span<const MessageTime> messages, const LinkCosts& link) {
  double error = 0.0;
  for (const MessageTime& message : messages) {
    const double seconds = link.latency_seconds + link.seconds_per_byte * message.bytes;
    error += std::pow(seconds / message.seconds - 1.0, 2);
  }
  return error;
}

}  // namespace

LinkCosts fit_link(std::span<const MessageTime> messages) {
  ARBALEST_CHECK(messages.size() >= 2);
  double aa = 0.0;
  double ab = 0.0;
  double bb = 0.0;
  double a = 0.0;
  double b = 0.0;
  for (const MessageTime& message : messages) {
    ARBALEST_CHECK(message.seconds > 0.0);
    const double one = 1.0 / message.seconds;
    const double bytes = message.bytes / message.seconds;
    aa += one * one;
    ab += one * bytes;
    bb += bytes * bytes;
    a += one;
    b += bytes;
  }
  const double determinant = aa * bb - ab * ab;
  ARBALEST_CHECK(determinant > 0.0);
  const LinkCosts both{(a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant};
  if (both.latency_seconds >= 0.0 && both.seconds_per_byte >= 0.0) return both;
  const LinkCosts latency{.latency_seconds = fit_one(messages, [](const MessageTime&) { return 1.0; })};
  const LinkCosts bandwidth{.seconds_per_byte = fit_one(messages, [](const MessageTime& of) { return of.bytes; })};
  return error_of(messages, latency) < error_of(messages, bandwidth) ? latency : bandwidth;
}

double predicted_seconds(Algorithm algorithm, const LinkCosts& link, double gamma, int ranks, std::size_t elements) {
  const double bytes = static_cast<double>(elements) * sizeof(float);
  const double message = link.latency_seconds + link.seconds_per_byte * bytes;
  // A reduce-scatter and an all-gather that send `messages` each, of (parts - 1) / parts of the vector.
  const auto in_parts = [&](int messages, int parts) {
    const double sent = bytes * (parts - 1) / parts;
    return 2.0 * messages * link.latency_seconds + sent * (2.0 * link.seconds_per_byte + gamma);
  };
  switch (algorithm) {
    case Algorithm::kPairwise:
    case Algorithm::kRing:
      return in_parts(ranks - 1, ranks);
    case Algorithm::kHalvingDoubling: {
      const auto places = std::bit_floor(static_cast<unsigned>(ranks));
      const double folding = static_cast<int>(places) == ranks ? 0.0 : 2.0 * message + bytes * gamma;
      return in_parts(std::bit_width(places) - 1, static_cast<int>(places)) + folding;
    }
    case Algorithm::kBinomialTree: {
      const int levels = std::bit_width(static_cast<unsigned>(ranks - 1));
      return levels * (2.0 * message + bytes * gamma);
    }
  }
  engine::fail(engine::ErrorKind::kInternal, "an algorithm without a prediction");
}

}  // namespace arbalest::bench
