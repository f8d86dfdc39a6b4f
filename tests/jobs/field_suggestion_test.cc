// Suggestions for names that the schema does not have.
#include "options/text/field_suggestion.h"

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

// Returns the valid job with these layers.
std::string with_layer(const std::string& layer) {
  return with_model("model { layers { name: \"a\" input: \"image\" " + layer + " } }");
}

}  // namespace

TEST_CASE("another framework's name is answered with our name in the same message") {
  for (const auto& [text, meant] : std::vector<std::pair<std::string, std::string>>{
           {changed("max_epochs: 10", "epochs: 10"), "no field 'epochs' in training; did you mean 'max_epochs'?"},
           {changed("base: 0.01", "lr: 0.01"), "no field 'lr' in learning_rate; did you mean 'base'?"},
           {with_layer("linear { units: 10 }"), "no field 'linear' in layer; did you mean 'dense'?"},
           {with_layer("bn {}"), "no field 'bn' in layer; did you mean 'batch_norm'?"},
           {with_layer("conv { filters: 3 kernel_size: 3 }"), "no field 'kernel_size' in conv; did you mean 'kernel'?"},
           {with_layer("conv { out_channels: 3 kernel: 3 }"),
            "no field 'out_channels' in conv; did you mean 'filters'?"},
           {with_layer("dense { num_output: 3 }"), "no field 'num_output' in dense; did you mean 'units'?"},
           {std::string(kGoodJob) + "synchronization { switch { epoch: 5 s_sgd {} } }\n",
            "no field 'epoch' in switch; did you mean 'at_epoch'?"}}) {
    CAPTURE(text);
    CHECK_THAT(refusal(text), ContainsSubstring(meant));
  }
}

TEST_CASE("a function that we lack gets no suggestion until it is a field") {
  const std::vector<std::string> without{"elu_like", "relu", "silu"};
  CHECK(suggested_name("Mish", without).empty());
  std::vector<std::string> with = without;
  with.emplace_back("mish");
  CHECK(suggested_name("Mish", with) == "mish");
}

TEST_CASE("another framework's name is answered with the field's path in a job") {
  for (const auto& [setting, meant] : std::vector<std::pair<std::string, std::string>>{
           {"epochs=3", "no field 'epochs' in the job; its path in a job is 'training.max_epochs'"},
           {"LR=0.1", "no field 'LR' in the job; its path in a job is 'learning_rate.base'"},
           {"synchronization=diloco{lr: 0.7}", "no field 'lr' in diloco; did you mean 'rate'?"},
           {"learning_rate.scheduler=cosine", "no field 'scheduler' in learning_rate; its fields are"},
           {"lr=0.1", "no field 'lr' in the job; its path in a job is 'learning_rate.base'"},
           {"training.learning_rate=0.1",
            "no field 'learning_rate' in training; its path in a job is "
            "'learning_rate.base'"},
           {"training.weight_decay=0", "its path in a job is 'optimizer.<kind>.weight_decay'"},
           {"training.with_learners=SQRT", "its path in a job is 'learning_rate.with_learners'"}}) {
    CAPTURE(setting);
    CHECK_THAT(refusal(std::string(kGoodJob), {setting}, engine::ErrorKind::kUsage), ContainsSubstring(meant));
  }
}

TEST_CASE("the name of a choice is answered with its alternatives, not with a field of that name elsewhere") {
  CHECK_THAT(refusal(changed("base: 0.01", "base: 0.01 schedule: cosine")),
             ContainsSubstring("no field 'schedule' in learning_rate; write one of these: fixed, multistep, inverse, "
                               "step, exponential, polynomial, cosine"));
}

TEST_CASE("no suggestion for a different function, nor for a name with several matching fields") {
  CHECK_THAT(refusal(with_layer("elu {}")), !ContainsSubstring("did you mean"));
  CHECK_THAT(refusal(std::string(kGoodJob), {"optimizer=lars"}, engine::ErrorKind::kUsage),
             !ContainsSubstring("did you mean"));
  CHECK_THAT(refusal(std::string(kGoodJob), {"training.kernel=3"}, engine::ErrorKind::kUsage),
             !ContainsSubstring("its path in a job"));
}

TEST_CASE("suggestions ignore case and hyphens") {
  CHECK_THAT(refusal(std::string(kGoodJob), {"synchronization=SMA"}, engine::ErrorKind::kUsage),
             ContainsSubstring("'SMA' is not an alternative of synchronization; did you mean 'sma'?"));
  CHECK_THAT(refusal(std::string(kGoodJob), {"synchronization=s-sgd"}, engine::ErrorKind::kUsage),
             ContainsSubstring("'s-sgd' is not an alternative of synchronization; did you mean 's_sgd'?"));
}

TEST_CASE("a word in place of a message is answered with the message's form") {
  CHECK_THAT(refusal(std::string(kGoodJob) + "synchronization: s_sgd\n"),
             ContainsSubstring("job.txtpb:7:18: error: synchronization is a message, and not s_sgd; did you mean "
                               "synchronization { s_sgd {} }?"));
  CHECK_THAT(
      refusal(changed("learners { per_device { fixed: 2 } }", "learners: 4")),
      ContainsSubstring("learners is a message, and not a number; did you mean learners { per_device { fixed: 4 } }?"));
  CHECK_THAT(refusal(std::string(kGoodJob) + "synchronization: \"s_sgd\"\n"),
             ContainsSubstring("job.txtpb:7:18: error: synchronization is a message, and not \"s_sgd\"; did you mean "
                               "synchronization { s_sgd {} }?"));
  for (const std::string list : {"[]", "[ ]", "[4]", "[2, 2]"}) {
    CAPTURE(list);
    CHECK_THAT(refusal(changed("learners { per_device { fixed: 2 } }", "learners: " + list)),
               ContainsSubstring("job.txtpb:6:11: error: learners is a message, and not a list; write learners { "
                                 "per_device { fixed: 1 } }") &&
                   !ContainsSubstring("errors") && !ContainsSubstring("Reading stops"));
  }
  CHECK_THAT(refusal(std::string(kGoodJob) + "synchronization: []\n"),
             ContainsSubstring("synchronization is a message, and not a list; write synchronization { ... }"));
  CHECK_THAT(refusal(std::string(kGoodJob), {"learning_rate=0.1"}, engine::ErrorKind::kUsage),
             ContainsSubstring("did you mean learning_rate { base: 0.1 }?"));
}

TEST_CASE("a --set of a single field does not replace the chosen alternative") {
  const std::string text = std::string(kGoodJob) + "synchronization { s_sgd {} }\n";
  CHECK(refusal(text, {"synchronization.sma.period=3"}, engine::ErrorKind::kUsage) ==
        "--set synchronization.sma.period=3: error: the job has s_sgd and not sma; to replace it, write "
        "synchronization.kind=sma{period: 3}");
  // A job accepts the text that the message suggests.
  CHECK(refusal(std::string(kGoodJob), {"data.mnist.directory=/data/x"}, engine::ErrorKind::kUsage) ==
        "--set data.mnist.directory=/data/x: error: the job has digits and not mnist; to replace it, write "
        "data.source=mnist{directory: \"/data/x\"}");
  CHECK(parse(std::string(kGoodJob), {"data.source=mnist{directory: \"/data/x\"}"}).data.directory == "/data/x");
  CHECK(refusal(text, {"synchronization.sma.period=default"}, engine::ErrorKind::kUsage) ==
        "--set synchronization.sma.period=default: error: the job has s_sgd and not sma; to replace it, write "
        "synchronization.kind=sma");
  CHECK_THAT(refusal(text, {"synchronization.sma.perod=3"}, engine::ErrorKind::kUsage),
             ContainsSubstring("no field 'perod' in sma; did you mean 'period'?"));
  CHECK(parse(text, {"synchronization.kind=sma{period: 3}"}).synchronization.period == 3);
  CHECK(parse(text, {"synchronization.s_sgd.bucket_mb=1"}).synchronization.bucket_bytes == 1 << 20);
}

}  // namespace arbalest::jobs
