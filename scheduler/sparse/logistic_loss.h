// The logistic loss of two classes, and a linear model's scores on sparse rows.
#pragma once

#include <cmath>
#include <vector>

#include "dataflow/input/sparse/sparse_rows.h"

namespace arbalest::scheduler {

// log(1 + exp(-margin)) with margin = label * (w x + bias), without overflow.
inline double logistic_loss(double margin) {
  return margin > 0.0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

// The probability of the wrong class, 1 / (1 + exp(margin)); the loss has the derivative -wrong_probability.
inline double wrong_probability(double margin) { return 1.0 / (1.0 + std::exp(margin)); }

struct LinearModel {
  std::vector<float> weights;  // [columns]
  float bias = 0.0F;
};

struct LogisticScores {
  double loss = 0.0;      // mean
  double accuracy = 0.0;  // rows with a positive margin, as a fraction; a margin of 0 is wrong
};

// `rows` has at least one row, and as many columns as the model has weights.
LogisticScores evaluate(const LinearModel& model, const dataflow::SparseRows& rows);

}  // namespace arbalest::scheduler
