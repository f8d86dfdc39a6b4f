// The reflective filler and checker, on messages of the schema whose options are known.
#include <limits>

#include "arbalest/v1/model.pb.h"
#include "arbalest/v1/optimizer.pb.h"
#include "arbalest/v1/training.pb.h"
#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

using dataflow::check_fields;
using dataflow::field_problem;
using dataflow::fill_field;
using dataflow::fill_fields;

namespace {

std::vector<std::string> problems(const google::protobuf::Message& message, const std::string& path) {
  dataflow::FieldIssues issues;
  check_fields(message, path, issues);
  std::vector<std::string> lines;
  for (const dataflow::FieldIssue& issue : issues.all()) lines.push_back(issue.path + ": " + issue.message);
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("missing fields get their defaults, and given ones stay") {
  v1::LocalResponseNorm norm;
  norm.set_beta(0.0F);  // given, although it is the value of a field that is missing
  fill_fields(norm);
  CHECK(norm.size() == 5);
  CHECK(norm.alpha() == 1e-4F);
  CHECK(norm.beta() == 0.0F);
  CHECK(norm.k() == 1.0F);
  v1::Model model;
  fill_fields(*model.mutable_zoo()->mutable_mlp());
  CHECK(std::vector<int>{256, 128} ==
        std::vector<int>(model.zoo().mlp().hidden().begin(), model.zoo().mlp().hidden().end()));
  model.mutable_zoo()->mutable_mlp()->clear_hidden();
  model.mutable_zoo()->mutable_mlp()->add_hidden(7);
  model.add_layers()->mutable_leaky_relu();
  fill_fields(model);
  CHECK(model.zoo().mlp().hidden_size() == 1);
  CHECK(model.layers(0).leaky_relu().slope() == 0.01F);
  CHECK_FALSE(model.has_accuracy());
}

TEST_CASE("a default message fills what a given one lacks, but not beside an alternative") {
  v1::Dense dense;
  fill_fields(dense);
  CHECK(dense.weight().initializer().has_he());
  CHECK(dense.weight().decay_multiplier() == 1.0F);
  CHECK_FALSE(dense.has_bias());  // its default has a condition
  fill_field(dense, "bias");
  CHECK(dense.bias().initializer().has_constant());
  v1::BatchNorm norm;
  norm.mutable_scale()->set_decay_multiplier(0.0F);
  norm.mutable_shift()->mutable_initializer()->mutable_gaussian()->set_mean(3.0F);
  fill_fields(norm);
  CHECK(norm.scale().initializer().constant().value() == 1.0F);
  CHECK(norm.scale().decay_multiplier() == 0.0F);
  CHECK(norm.shift().initializer().gaussian().mean() == 3.0F);
  CHECK(norm.shift().initializer().gaussian().stddev() == 0.01F);
  CHECK_FALSE(norm.shift().initializer().has_constant());
}

TEST_CASE("the default alternative is chosen only if none is") {
  v1::Optimizer optimizer;
  fill_fields(optimizer);
  REQUIRE(optimizer.has_sgd());
  CHECK((optimizer.sgd().has_nesterov() && !optimizer.sgd().nesterov()));
  v1::Optimizer other;
  other.mutable_adamw()->set_beta1(0.5F);
  fill_fields(other);
  REQUIRE(other.has_adamw());
  CHECK((other.adamw().beta1() == 0.5F && other.adamw().beta2() == 0.999F && other.adamw().weight_decay() == 0.01F));
}

TEST_CASE("filling twice is filling once, and a condition is left to the caller") {
  v1::Training once;
  fill_fields(once);
  CHECK((once.batch_size() == 32 && once.max_epochs() == 10 && once.precision() == v1::Training::FP32));
  CHECK_FALSE(once.has_rollback_factor());
  v1::Training twice = once;
  fill_fields(twice);
  CHECK(twice.SerializeAsString() == once.SerializeAsString());
  fill_field(once, "rollback_factor");
  CHECK(once.rollback_factor() == 0.5);
  once.set_rollback_factor(0.25);
  fill_field(once, "rollback_factor");
  CHECK(once.rollback_factor() == 0.25);
}

TEST_CASE("numbers out of range are reported with their path, and missing ones are not") {
  v1::Optimizer optimizer;
  CHECK(problems(optimizer, "optimizer").empty());
  v1::Sgd& sgd = *optimizer.mutable_sgd();
  sgd.set_momentum(1.0F);
  sgd.set_weight_decay(1.0F);
  CHECK(problems(optimizer, "optimizer") == Lines{"optimizer.sgd.momentum: momentum must be in [0, 1), not 1"});
  sgd.set_momentum(0.0F);
  CHECK(problems(optimizer, "optimizer").empty());
  sgd.set_momentum(std::numeric_limits<float>::quiet_NaN());
  CHECK(problems(optimizer, "optimizer") == Lines{"optimizer.sgd.momentum: momentum must be in [0, 1), not nan"});
  v1::Training training;
  training.set_batch_size(0);
  training.set_max_minutes(0.0);
  training.set_spike_factor(1.0);
  CHECK(problems(training, "training") == Lines{"training.batch_size: batch_size must be at least 1, not 0",
                                                "training.max_minutes: max_minutes must be in (0, 1000000], not 0",
                                                "training.spike_factor: spike_factor must be in (1, 1000000], not 1"});
  CHECK(field_problem(training, "spike_factor") == "spike_factor must be in (1, 1000000], not 1");
  CHECK(field_problem(training, "rollback_factor").empty());
}

TEST_CASE("ends of a range are compared in the type of the field") {
  v1::LocalResponseNorm norm;
  norm.set_k(1e-5F);  // as a double it is below 1e-5
  CHECK(problems(norm, "").empty());
  norm.set_k(std::nextafter(1e-5F, 0.0F));
  CHECK(problems(norm, "").size() == 1);
}

TEST_CASE("elements of lists and required fields are reported") {
  v1::Model model;
  model.mutable_zoo()->mutable_mlp()->add_hidden(3);
  model.mutable_zoo()->mutable_mlp()->add_hidden(0);
  model.add_layers()->mutable_dense();
  CHECK(problems(model, "model") ==
        Lines{"model.zoo.mlp.hidden[1]: hidden[1] must be in [1, 1048576], not 0",
              "model.layers[0].dense.units: units is missing: how many features the output has"});
}

}  // namespace arbalest::jobs
