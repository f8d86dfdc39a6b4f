// Matrix factorization with biases (Koren et al., 2009). It predicts a user's rating of an item as p_user . q_item +
// b_user + b_item + m.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

// Standard deviation of the vectors of users and items. At 0, the gradients of both would vanish.
constexpr float kStddev = 0.1F;

void embed(ZooBuilder& builder, const std::string& name, int width, int column) {
  v1::Embedding& table = builder.embedding(name, width, column);
  table.mutable_weight()->mutable_initializer()->mutable_gaussian()->set_stddev(kStddev);
}

void embed_bias(ZooBuilder& builder, const std::string& name, int column) {
  builder.embedding(name, 1, column).mutable_weight()->mutable_initializer()->mutable_constant();
}

}  // namespace

void matrix_factorization(const v1::MatrixFactorization& options, ZooBuilder& builder) {
  builder.require_columns(2);
  embed(builder, "user", options.width(), 0);
  embed(builder, "item", options.width(), 1);
  embed_bias(builder, "user_bias", 0);
  embed_bias(builder, "item_bias", 1);
  // The mean that all ratings share: the one parameter without weight decay.
  v1::Parameter& mean = *builder.inner_product("interaction", "user", "item").mutable_bias();
  mean.mutable_initializer()->mutable_constant()->set_value(options.mean());
  mean.set_decay_multiplier(0.0F);
  builder.add("biases", "user_bias", "item_bias");
  builder.add("rating", "interaction", "biases");
  builder.predict();
}

}  // namespace arbalest::dataflow
