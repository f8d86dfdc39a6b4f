// A program for a simulated cluster, with every kind of operation that a training job has in its rounds.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/process/operations/agree.h"
#include "engine/process/operations/all_reduce.h"
#include "engine/process/operations/flag_reduction.h"
#include "engine/process/operations/library_all_reduce.h"
#include "tests/process/vectors.h"

namespace arbalest::tests {

// A small job has some rounds: an agreement, then in each round a stop flag and an all-reduce, in turn by us and by the
// library.
class SmallJob {
 public:
  static constexpr int kElements = 100;

  SmallJob(int ranks, int rounds, unsigned seed) : ranks_(ranks), rounds_(rounds) {
    for (int round = 0; round < rounds; ++round) {
      addends_.emplace_back(ranks, kElements, seed + static_cast<unsigned>(round));
      values_.push_back(addends_.back().of_rank);
    }
  }

  std::unique_ptr<engine::process::Operation> operator()(int rank, int step) {
    if (step == 0) return std::make_unique<engine::process::Agree>("job");
    const int round = (step - 1) / 2;
    if (round >= rounds_) return nullptr;
    if (step % 2 == 1) return std::make_unique<engine::process::FlagReduction>(0);
    std::vector<float>& values = values_[static_cast<std::size_t>(round)][static_cast<std::size_t>(rank)];
    if (round % 2 == 1) return std::make_unique<engine::process::LibraryAllReduce>(values);
    return std::make_unique<engine::process::AllReduce>(values, rank, ranks_,
                                                        engine::process::AllReduceOptions{.chunk = 8, .window = 2});
  }

  bool is_right(int rank) const {
    for (std::size_t round = 0; round < addends_.size(); ++round) {
      if (values_[round][static_cast<std::size_t>(rank)] != addends_[round].sum) return false;
    }
    return true;
  }

 private:
  const int ranks_;
  const int rounds_;
  std::vector<Addends> addends_;
  std::vector<std::vector<std::vector<float>>> values_;  // [round][rank]
};

}  // namespace arbalest::tests
