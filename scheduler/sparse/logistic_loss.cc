#include "scheduler/sparse/logistic_loss.h"

#include "engine/base/error.h"

namespace arbalest::scheduler {

LogisticScores evaluate(const LinearModel& model, const dataflow::SparseRows& rows) {
  ARBALEST_CHECK(static_cast<std::int64_t>(model.weights.size()) == rows.columns && rows.rows() > 0);
  double loss = 0.0;
  std::int64_t right = 0;
  for (std::size_t row = 0; row < rows.labels.size(); ++row) {
    double output = model.bias;
    for (auto e = static_cast<std::size_t>(rows.starts[row]); e < static_cast<std::size_t>(rows.starts[row + 1]); ++e) {
      output += double{model.weights[static_cast<std::size_t>(rows.indices[e])]} * rows.values[e];
    }
    const double margin = rows.labels[row] * output;
    loss += logistic_loss(margin);
    right += margin > 0.0 ? 1 : 0;
  }
  const auto count = static_cast<double>(rows.rows());
  return {loss / count, static_cast<double>(right) / count};
}

}  // namespace arbalest::scheduler
