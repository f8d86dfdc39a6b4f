// Textbook algorithms of the all-reduce, as lists of exchanges for each rank.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/all_reduce/exchange.h"

namespace arbalest::bench {

// Each rank sends a slice to the next rank and gets one from the rank before, 2 (P - 1) times: first to add, then to
// copy. Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
std::vector<Exchange> ring(int rank, int ranks, std::size_t elements);

// Ranks exchange halves with a rank at half the distance each time, then the same way back. If P is no power of two,
// some ranks first add their vector to that of a neighbor, and get the sum from it at the end. Rabenseifner,
// "Optimization of collective reduction operations", 2004.
std::vector<Exchange> halving_doubling(int rank, int ranks, std::size_t elements);

// Whole vectors go up a binomial tree to rank 0, and the sum down again.
std::vector<Exchange> binomial_tree(int rank, int ranks, std::size_t elements);

// No sum: an even rank sends its vector to the rank behind it and gets it back. All such pairs do so at the same time.
std::vector<Exchange> ping_pong(int rank, int ranks, std::size_t elements);

}  // namespace arbalest::bench
