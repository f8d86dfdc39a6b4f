#include "bench/all_reduce/algorithms.h"

#include <bit>

#include "engine/process/operations/slices.h"

namespace arbalest::bench {

namespace {

// Returns slices [begin, end) of a vector that is divided into `count` ones.
Part slices(std::size_t elements, int count, int begin, int end) {
  const engine::process::Slices all(elements, count, elements + 1);
  return {all.begin(begin), all.begin(end) - all.begin(begin)};
}

int power_below(int number) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(number))); }

// The exchanges of P' ranks, a power of two, of which this is number `place`. `rank_of` tells the rank of a place.
template <typename RankOf>
void add_halving_doubling(int place, int places, std::size_t elements, const RankOf& rank_of,
                          std::vector<Exchange>& exchanges) {
  int begin = 0;
  int end = places;
  for (int distance = places / 2; distance >= 1; distance /= 2) {
    const int middle = begin + distance;
    const Part low = slices(elements, places, begin, middle);
    const Part high = slices(elements, places, middle, end);
    const bool keeps_low = (place & distance) == 0;
    const int partner = rank_of(place ^ distance);
    exchanges.push_back({partner, keeps_low ? high : low, partner, keeps_low ? low : high, true});
    (keeps_low ? end : begin) = middle;
  }
  for (int distance = 1; distance < places; distance *= 2) {
    const bool has_low = (place & distance) == 0;
    const int other = has_low ? end : begin - distance;
    const int partner = rank_of(place ^ distance);
    exchanges.push_back({partner, slices(elements, places, begin, end), partner,
                         slices(elements, places, other, other + distance), false});
    (has_low ? end : begin) = has_low ? end + distance : begin - distance;
  }
}

}  // namespace

std::vector<Exchange> ring(int rank, int ranks, std::size_t elements) {
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;
  const auto slice = [&](int number) {
    const int wrapped = (number + 2 * ranks) % ranks;
    return slices(elements, ranks, wrapped, wrapped + 1);
  };
  std::vector<Exchange> exchanges;
  for (int step = 0; step < ranks - 1; ++step) {
    exchanges.push_back({next, slice(rank - step), before, slice(rank - step - 1), true});
  }
  for (int step = 0; step < ranks - 1; ++step) {
    exchanges.push_back({next, slice(rank + 1 - step), before, slice(rank - step), false});
  }
  return exchanges;
}

std::vector<Exchange> halving_doubling(int rank, int ranks, std::size_t elements) {
  const int places = power_below(ranks);
  const int folded = ranks - places;  // pairs of ranks that share a place
  const Part whole{0, elements};
  std::vector<Exchange> exchanges;
  const bool is_folded = rank < 2 * folded;
  if (is_folded && rank % 2 == 0) {
    exchanges.push_back({.to = rank + 1, .sent = whole});
    exchanges.push_back({.from = rank + 1, .received = whole});
    return exchanges;
  }
  if (is_folded) exchanges.push_back({.from = rank - 1, .received = whole, .adds = true});
  const int place = is_folded ? rank / 2 : rank - folded;
  add_halving_doubling(
      place, places, elements, [&](int of) { return of < folded ? 2 * of + 1 : of + folded; }, exchanges);
  if (is_folded) exchanges.push_back({.to = rank - 1, .sent = whole});
  return exchanges;
}

std::vector<Exchange> binomial_tree(int rank, int ranks, std::size_t elements) {
  const Part whole{0, elements};
  std::vector<Exchange> up;
  std::vector<Exchange> down;
  for (int distance = 1; distance < ranks; distance *= 2) {
    if ((rank & distance) != 0) {
      up.push_back({.to = rank - distance, .sent = whole});
      down.push_back({.from = rank - distance, .received = whole});
      break;
    }
    if (rank + distance >= ranks) continue;
    up.push_back({.from = rank + distance, .received = whole, .adds = true});
    down.push_back({.to = rank + distance, .sent = whole});
  }
  up.insert(up.end(), down.rbegin(), down.rend());
  return up;
}

std::vector<Exchange> ping_pong(int rank, int ranks, std::size_t elements) {
  const Part whole{0, elements};
  const int partner = rank ^ 1;
  if (partner >= ranks) return {};
  const Exchange send{.to = partner, .sent = whole};
  const Exchange receive{.from = partner, .received = whole};
  return rank % 2 == 0 ? std::vector{send, receive} : std::vector{receive, send};
}

}  // namespace arbalest::bench
