// Matrix factorization with biases (Koren et al., 2009). It predicts a user's rating of an item as p_user . q_item +
// b_user + b_item + m.
#pragma once

#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

void matrix_factorization(const v1::MatrixFactorization& options, ZooBuilder& builder);

}  // namespace arbalest::dataflow
