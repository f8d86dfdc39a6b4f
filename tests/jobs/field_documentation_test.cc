#include "options/text/field_documentation.h"

#include <google/protobuf/descriptor.h>

#include "arbalest/v1/job.pb.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

using Catch::Matchers::StartsWith;

namespace {

// Checks that every field from `type` down has a description, and returns their number.
int check_fields(const google::protobuf::Descriptor& type, const std::string& prefix) {
  int count = 0;
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    INFO(path);
    CHECK_THAT(field_documentation(path), StartsWith(path + ": "));
    count += 1;
    if (field.message_type() != nullptr) count += check_fields(*field.message_type(), path + ".");
  }
  return count;
}

}  // namespace

TEST_CASE("the documentation of a field has its type and the comment of the schema") {
  const std::string base = field_documentation("learning_rate.base");
  CHECK_THAT(base, StartsWith("learning_rate.base: number\n") && ContainsSubstring("\nIn (0, 1000]. Required.\n"));
  CHECK_THAT(field_documentation("training.batch_size"), StartsWith("training.batch_size: integer\n"));
  CHECK_THAT(field_documentation("devices"), StartsWith("devices: list of text\n"));
  CHECK_THAT(field_documentation("devices[0]"), ContainsSubstring("The devices to train on"));
}

TEST_CASE("the documentation of a field states its range, unit and default") {
  const auto states = [](const char* field, const std::string& line) {
    CHECK_THAT(field_documentation(field), ContainsSubstring("\n" + line + "\n"));
  };
  states("model.layers.leaky_relu.slope", "In [0, 1]. Default: 0.01.");
  states("model.layers.dropout.ratio", "In [0, 1). Default: 0.5.");
  states("model.layers.conv.kernel_height", "In [1, 1024] pixels. Default: kernel.");
  states("model.layers.conv.padding",
         "In [0, 1024] pixels. Default: 0 with EXPLICIT, without padding_height and padding_width.");
  states("model.zoo.mlp.hidden", "Each in [1, 1048576]. Default: [256, 128].");
  states("training.batch_size", "At least 1. Default: 32.");
  states("data.cifar10.directory", "Default: \"cifar-10\".");
  states("synchronization.sma", "The default.");
  states("training.max_minutes", "In (0, 1000000]. Default: no limit.");
  CHECK_THAT(field_documentation("checkpoint"), !ContainsSubstring("efault: {}"));
}

TEST_CASE("the documentation of a message lists its fields, that of an enum its values") {
  CHECK_THAT(field_documentation("learning_rate.one_cycle"),
             ContainsSubstring("The rate rises once") && ContainsSubstring("\nFields:\n") &&
                 ContainsSubstring("  rising        number  Fraction of the epochs in which the rate rises. In (0, 1). "
                                   "Default: 0.3.\n") &&
                 ContainsSubstring("Excludes the other choices of schedule: fixed,"));
  CHECK_THAT(field_documentation("learning_rate.with_learners"),
             ContainsSubstring("one of KEEP, SQRT, LINEAR") &&
                 ContainsSubstring("  SQRT\n    The rate grows with the square root of the number.\n"));
}

TEST_CASE("a bare name finds the field, or lists all fields of that name") {
  CHECK(field_documentation("batch_size") == field_documentation("training.batch_size"));
  const std::string several = field_documentation("momentum");
  CHECK_THAT(several,
             StartsWith("Fields with the name momentum:\n") && ContainsSubstring("  optimizer.sgd.momentum\n"));
}

TEST_CASE("the end of a path finds the field, and a value of an enum its field") {
  CHECK(field_documentation("validation.fraction") == field_documentation("data.validation.fraction"));
  CHECK(field_documentation("ROLL_BACK") == field_documentation("training.on_divergence"));
  CHECK_THAT(field_documentation("sgd.momentum"), StartsWith("optimizer.sgd.momentum: "));
  CHECK(field_documentation("alidation.fraction").empty());
}

TEST_CASE("what is no field of a job has no documentation") {
  for (const char* name : {"", ".", "no_such_field", "training.no_such_field", "training.batch_size.more", "a b"}) {
    CHECK(field_documentation(name).empty());
  }
}

TEST_CASE("every field of the schema is documented") { CHECK(check_fields(*v1::Job::descriptor(), "") > 200); }

TEST_CASE("a misspelled field has a nearest one, by the rules of job files") {
  CHECK(nearest_field("learning_rate.bass") == "learning_rate.base");
  CHECK(nearest_field("lerning_rate.base") == "learning_rate.base");
  CHECK(nearest_field("trainig.batchsize") == "training.batch_size");
  CHECK(nearest_field("optimizer.sgd.momentun") == "optimizer.sgd.momentum");
  CHECK(nearest_field("training.batch_size.more") == "training.batch_size");  // a number has no fields
  CHECK(nearest_field("momentm") == "momentum");
  CHECK(nearest_field("keep_lst") == "keep_last");
  CHECK(nearest_field("pacience_epochs") == "patience_epochs");
  CHECK(nearest_field("training.pacience_epochs") == "training.patience_epochs");
  for (const char* name : {"", ".", "a b", "training.nothing_like_it", "nothing_like_it"}) {
    CHECK(nearest_field(name).empty());
  }
}

}  // namespace arbalest::jobs
