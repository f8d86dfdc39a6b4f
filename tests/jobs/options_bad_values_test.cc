// Jobs with valid syntax and invalid values.
#include <fmt/format.h>

#include "engine/cuda_devices.h"
#include "engine/host/topology.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

struct BadValue {
  std::string from;
  std::string to;
  std::string said;  // first line, after "job.txtpb:"
};

void check_all(const std::vector<BadValue>& values) {
  for (const BadValue& value : values) {
    INFO(value.to);
    const std::string text = refusal(changed(value.from, value.to));
    CHECK(text.substr(0, text.find('\n')) == "job.txtpb:" + value.said);
  }
}

}  // namespace

TEST_CASE("numbers out of their range are refused") {
  check_all({
      {"batch_size: 32", "batch_size: 0", "4:12: error: batch_size must be at least 1, not 0"},
      {"batch_size: 32", "batch_size: -5", "4:12: error: batch_size must be at least 1, not -5"},
      {"batch_size: 32", "batch_size: 20001",
       "4:12: error: batch_size 20001 is larger than the training set of digits (20000 examples)"},
      {"max_epochs: 10", "max_epochs: 0", "4:27: error: max_epochs must be in [1, 1000000], not 0"},
      {"batch_size: 32", "batch_norm_examples: 0",
       "4:12: error: batch_norm_examples must be in [1, 1000000000], not 0"},
      {"batch_size: 32", "moving_average_epochs: -0.5",
       "4:12: error: moving_average_epochs must be in [0, 1000000], not -0.5"},
      {"batch_size: 32", "moving_average_epochs: nan",
       "4:12: error: moving_average_epochs must be a finite number, not nan"},
      {"max_epochs: 10", "target_accuracy: 0", "4:27: error: target_accuracy must be in (0, 1], not 0"},
      {"max_epochs: 10", "target_accuracy: 90",
       "4:27: error: target_accuracy must be in (0, 1], not 90; did you mean 0.9?"},
      {"max_epochs: 10", "target_accuracy: 1.01", "4:27: error: target_accuracy must be in (0, 1], not 1.01"},
      {"max_epochs: 10", "target_accuracy: 101", "4:27: error: target_accuracy must be in (0, 1], not 101"},
      {"base: 0.01", "base: 0", "5:17: error: base must be in (0, 1000], not 0"},
      {"base: 0.01", "base: -0.1", "5:17: error: base must be in (0, 1000], not -0.1"},
      {"fixed: 2", "fixed: 0", "6:25: error: fixed must be in [1, 1024], not 0"},
      {"learners", "optimizer { sgd { momentum: 1 } }\nlearners", "6:19: error: momentum must be in [0, 1), not 1"},
      {"learners", "optimizer { sgd { weight_decay: -1 } }\nlearners",
       "6:19: error: weight_decay must be in [0, 1], not -1"},
      {"learners", "synchronization { sma { central_momentum: 1 } }\nlearners",
       "6:25: error: central_momentum must be in [0, 1), not 1"},
      {"learners", "synchronization { sma { alpha: 0 } }\nlearners", "6:25: error: alpha must be in (0, 1], not 0"},
      {"learners", "synchronization { sma { period: 0 } }\nlearners",
       "6:25: error: period must be in [1, 1000], not 0"},
      {"digits {} }", "digits {} normalization { stddev: 1e-40 } }",
       "3:34: error: stddev must be in [1e-06, 1000], not 1e-40"},
  });
}

TEST_CASE("numbers that are not finite are refused") {
  check_all({
      {"base: 0.01", "base: nan", "5:17: error: base must be a finite number, not nan"},
      {"base: 0.01", "base: -nan", "5:17: error: base must be a finite number, not nan"},
      {"base: 0.01", "base: 1e999", "5:17: error: base must be a finite number; the largest is 1.8e+308"},
      {"base: 0.01", "base: -inf", "5:17: error: base must be a finite number; the largest is 1.8e+308"},
      {"learners", "optimizer { sgd { weight_decay: 1e39 } }\nlearners",
       "6:19: error: weight_decay must be a finite number; the largest is 3.4e+38"},
  });
}

TEST_CASE("drops of the learning rate must be complete and in order") {
  check_all({
      {"base: 0.01", "base: 1 multistep {}",
       "5:25: error: multistep has no drop; add one, as in drop { epoch: 8 factor: 0.1 }, or choose fixed {}"},
      {"base: 0.01", "base: 1 multistep { drop { epoch: 8 factor: 0.1 } drop { epoch: 8 factor: 0.1 } }",
       "5:74: error: drops must be in ascending order: epoch 8 comes after epoch 8"},
      {"base: 0.01", "base: 1 multistep { drop { epoch: 0 factor: 0.1 } }",
       "5:44: error: epoch must be above 0, not 0"},
      {"base: 0.01", "base: 1 multistep { drop { epoch: 1 factor: 2 } }",
       "5:53: error: factor must be in (0, 1], not 2"},
      {"base: 0.01", "base: 1 multistep { drop { epoch: 1 } }",
       "5:37: error: factor is missing: what the rate is multiplied by, such as 0.1"},
  });
}

TEST_CASE("values of learning-rate schedules out of their range are refused") {
  const auto schedule = [](const std::string& text, const std::string& said) {
    return BadValue{"base: 0.01", "base: 1 " + text, "5:" + said};
  };
  check_all({
      schedule("inverse {}", "25: error: gamma is missing: how fast the rate falls, such as 0.1"),
      schedule("inverse { gamma: 0 }", "35: error: gamma must be in (0, 1000], not 0"),
      schedule("inverse { gamma: 1 power: -1 }", "44: error: power must be in (0, 100], not -1"),
      schedule("step { factor: 1 }", "25: error: epochs is missing: the time between two drops, such as 10"),
      schedule("step { epochs: 1 }", "25: error: factor is missing: what the rate is multiplied by, such as 0.1"),
      schedule("step { epochs: 0 factor: 1 }", "32: error: epochs must be in [0.001, 1000000], not 0"),
      schedule("step { epochs: 1 factor: 0 }", "42: error: factor must be in (0, 1], not 0"),
      schedule("exponential {}",
               "25: error: factor is missing: what the rate is multiplied by in an epoch, such as 0.9"),
      schedule("exponential { factor: 1.1 }", "39: error: factor must be in (0, 1], not 1.1"),
      schedule("polynomial { epochs: 0 }", "38: error: epochs must be in (0, 1000000], not 0"),
      schedule("polynomial { power: 0 }", "38: error: power must be in (0, 100], not 0"),
      schedule("polynomial { final_factor: 2 }", "38: error: final_factor must be in [0, 1], not 2"),
      schedule("cosine { epochs: -1 }", "34: error: epochs must be in (0, 1000000], not -1"),
      schedule("cosine { final_factor: -0.1 }", "34: error: final_factor must be in [0, 1], not -0.1"),
      schedule("cyclic {}", "25: error: epochs is missing: the length of one cycle, such as 4"),
      schedule("cyclic { epochs: 1e7 }", "34: error: epochs must be in [0.001, 1000000], not 10000000"),
      schedule("cyclic { epochs: 1 rising: 0 }", "44: error: rising must be in (0, 1), not 0"),
      schedule("cyclic { epochs: 1 start_factor: 2 }", "44: error: start_factor must be in [0, 1], not 2"),
      schedule("cyclic { epochs: 1 amplitude_factor: 0 }", "44: error: amplitude_factor must be in (0, 1], not 0"),
      schedule("one_cycle { epochs: 0 }", "37: error: epochs must be in (0, 1000000], not 0"),
      schedule("one_cycle { rising: 1 }", "37: error: rising must be in (0, 1), not 1"),
      schedule("one_cycle { start_factor: -1 }", "37: error: start_factor must be in [0, 1], not -1"),
      schedule("one_cycle { final_factor: 25 }", "37: error: final_factor must be in [0, 1], not 25"),
      schedule("one_cycle { final_factor: nan }", "37: error: final_factor must be a finite number, not nan"),
  });
}

TEST_CASE("a warm-up must end before the job and before the first drop") {
  const auto schedule = [](const std::string& text, const std::string& said) {
    return BadValue{"base: 0.01", "base: 1 " + text, "5:" + said};
  };
  check_all({
      schedule("warm_up {}", "25: error: epochs is missing: how long the rate grows, such as 5"),
      schedule("warm_up { epochs: 0 }", "35: error: epochs must be in (0, 1000000], not 0"),
      schedule("warm_up { epochs: 1 start_factor: 1.5 }", "45: error: start_factor must be in [0, 1], not 1.5"),
      schedule("warm_up { epochs: 10 }",
               "35: error: the warm-up of 10 epochs must end before the job, which takes 10 epochs"),
      schedule("warm_up { epochs: 2 } multistep { drop { epoch: 2 factor: 1 } }",
               "66: error: the drop at epoch 2 comes before the end of the warm-up, at epoch 2"),
  });
  // The schedule's remaining epochs follow from the warm-up, so there is no error for them.
  const std::string text = refusal(changed("base: 0.01", "base: 1 cosine {} warm_up { epochs: 11 }"));
  CHECK_THAT(text, ContainsSubstring("the warm-up of 11 epochs must end"));
  CHECK(text.find("errors") == std::string::npos);
  CHECK(refusal(changed("max_epochs: 10 }\nlearning_rate { base: 0.01",
                        "max_epochs: 0 }\nlearning_rate { base: 1 one_cycle {}"))
            .find("errors") == std::string::npos);
}

TEST_CASE("values of optimizers out of their range are refused") {
  const auto optimizer = [](const std::string& text, const std::string& said) {
    return BadValue{"learners", "optimizer { " + text + " }\nlearners", "6:" + said};
  };
  check_all({
      optimizer("sgd { momentum: -0.1 }", "19: error: momentum must be in [0, 1), not -0.1"),
      optimizer("sgd { nesterov: true }", "19: error: nesterov needs a momentum above 0, such as 0.9"),
      optimizer("rmsprop { smoothing: 1 }", "23: error: smoothing must be in [0, 1), not 1"),
      optimizer("rmsprop { momentum: 1 }", "23: error: momentum must be in [0, 1), not 1"),
      optimizer("rmsprop { epsilon: 0 }", "23: error: epsilon must be in [1e-12, 10], not 0"),
      optimizer("rmsprop { weight_decay: -1 }", "23: error: weight_decay must be in [0, 1], not -1"),
      optimizer("adamw { beta1: 1 }", "21: error: beta1 must be in [0, 1), not 1"),
      optimizer("adamw { beta2: -0.5 }", "21: error: beta2 must be in [0, 1), not -0.5"),
      optimizer("adamw { epsilon: 100 }", "21: error: epsilon must be in [1e-12, 10], not 100"),
      optimizer("adamw { weight_decay: 1.5 }", "21: error: weight_decay must be in [0, 1], not 1.5"),
      optimizer("adamw { beta1: inf }", "21: error: beta1 must be a finite number; the largest is 3.4e+38"),
      optimizer("clip_gradient_norm: 0", "13: error: clip_gradient_norm must be in (0, 1000000000], not 0"),
      optimizer("clip_gradient_norm: -5", "13: error: clip_gradient_norm must be in (0, 1000000000], not -5"),
      optimizer("exclude_from_weight_decay: PARAMETER_GROUP_UNSPECIFIED",
                "13: error: 'PARAMETER_GROUP_UNSPECIFIED' is not a value of exclude_from_weight_decay (values: BIASES, "
                "NORMALIZATION)"),
      optimizer("exclude_from_weight_decay: [BIASES, 7]",
                "49: error: '7' is not a value of exclude_from_weight_decay (values: BIASES, NORMALIZATION)"),
  });
}

TEST_CASE("the error for a missing required field asks for it") {
  check_all({
      {"data { digits {} }\n", "",
       "1:1: error: no data is chosen; add data { digits {} } (part of the program) or data { mnist {} }"},
      {"model { zoo { lenet {} } }\n", "",
       "1:1: error: no model is chosen; add one, as in model { zoo { lenet {} } }, or list its layers"},
      {"base: 0.01", "fixed {}", "5:1: error: learning_rate.base is missing: the length of the steps, such as 0.01"},
      {"zoo { lenet {} }", "zoo {}",
       "2:9: error: zoo names no model; choose one, such as lenet {} or resnet { depth: 50 }"},
      {"zoo { lenet {} }", "",
       "2:1: error: the model is empty; choose one, as in model { zoo { lenet {} } }, or list its layers"},
      {"lenet {} }", "lenet {} } layers { name: \"a\" relu {} }",
       "2:26: error: the model has both zoo and layers; remove one of them"},
  });
}

TEST_CASE("enum values that are unknown or UNSPECIFIED are refused") {
  const std::string values = "is not a value of with_learners (values: KEEP, SQRT, LINEAR)";
  check_all({
      {"base: 0.01", "base: 1 with_learners: 77", "5:25: error: '77' " + values},
      {"base: 0.01", "base: 1 with_learners: RATE_SCALING_UNSPECIFIED",
       "5:25: error: 'RATE_SCALING_UNSPECIFIED' " + values},
  });
}

TEST_CASE("a precision that is unknown, or not supported by the job's devices, is refused") {
  const std::string values = "is not a value of precision (values: FP32, TF32, BF16)";
  check_all({
      {"max_epochs: 10", "precision: 9", "4:27: error: '9' " + values},
      {"max_epochs: 10", "precision: PRECISION_UNSPECIFIED", "4:27: error: 'PRECISION_UNSPECIFIED' " + values},
  });
  CHECK_THAT(refusal(changed("max_epochs: 10", "precision: bf16")),
             ContainsSubstring("4:38: error: 'bf16' is not a value of precision; did you mean 'BF16'?"));
  CHECK_THAT(
      refusal(changed("max_epochs: 10", "precision: TF32") + "devices: 'cpu'\n"),
      ContainsSubstring("job.txtpb:4:27: error: precision TF32 needs a GPU, and 'cpu' is none; name a GPU, as in "
                        "devices: \"cuda:0\", or leave precision out"));
  CHECK_THAT(
      refusal(std::string(kGoodJob) + "devices: 'cpu'\n", {"training.precision=TF32"}, engine::ErrorKind::kUsage),
      ContainsSubstring("--set training.precision=TF32: error: precision TF32 needs a GPU"));
}

TEST_CASE("text that cannot name a file is refused") {
  check_all({
      {"\"job\"", "\"\\377\"", "1:1: error: name is not valid UTF-8"},
      {"\"job\"", "\"a\\nb\"", "1:1: error: name holds a control character"},
      {"\"job\"", "\"../up\"",
       "1:1: error: name names a directory: letters, digits, '-', '_' and '.', not starting with '.'; '../up' is not "
       "of "
       "that form"},
      {"digits {}", "mnist { directory: \"\" }", "3:16: error: directory is empty; '.' is the data root itself"},
  });
  CHECK_THAT(refusal("devices: \"cpu\xff\"\n" + std::string(kGoodJob)),
             ContainsSubstring("job.txtpb:1:1: error: devices is not valid UTF-8\n    1 | devices: \"cpu?\"\n"));
}

TEST_CASE("devices that the machine does not have are refused") {
  const std::string core = std::to_string(engine::host::allowed_cores().front());
  const auto with_devices = [](const std::string& devices) { return std::string(kGoodJob) + devices; };
  CHECK_THAT(refusal(with_devices("devices: \"gpu:0\"")),
             ContainsSubstring("job.txtpb:7:1: error: device 'gpu:0': there is no kind of device 'gpu'"));
  CHECK_THAT(refusal(with_devices("devices: \"cpu:99999\"")),
             ContainsSubstring("job.txtpb:7:1: error: device 'cpu:99999': this process has no core 99999"));
  CHECK_THAT(refusal(with_devices(fmt::format("devices: \"cpu:{}\"\ndevices: \"cpu:{}\"", core, core))),
             ContainsSubstring(fmt::format("job.txtpb:8:1: error: device 'cpu:{}': core {} belongs to 'cpu:{}' already",
                                           core, core, core)));
}

TEST_CASE("a GPU that the machine does not have is refused, and so are cores") {
  const engine::CudaMachine machine = engine::find_cuda_devices();
  const std::string text = refusal(std::string(kGoodJob) + "devices: [\"cuda:4096\"]\n");
  CHECK_THAT(text, ContainsSubstring("job.txtpb:7:11: error: device 'cuda:4096': " +
                                     (machine.problem.empty() ? "this machine has" : machine.problem)));
}

TEST_CASE("the error for an element of a list shows its position") {
  CHECK_THAT(refusal(std::string(kGoodJob) + "devices: [\"cpu:x\",\n \"gpu\"]\n"),
             ContainsSubstring("job.txtpb:7:11: error: device 'cpu:x'") &&
                 ContainsSubstring("job.txtpb:8:2: error: device 'gpu'") && ContainsSubstring("\n2 errors"));
  CHECK_THAT(refusal(std::string(kGoodJob) + "devices: \"cpu:-1\""), ContainsSubstring("'-1' is not a core number"));
}

TEST_CASE("every device that shares cores with an earlier one is an error at its position") {
  const std::string core = std::to_string(engine::host::allowed_cores().front());
  const std::string text = refusal(fmt::format(
      "{0}devices: \"cpu:{1}\"\ndevices: \"cpu:{1}\"\ndevices: \"cpu:x\"\ndevices: \"cpu\"\n", kGoodJob, core));
  CHECK_THAT(text,
             ContainsSubstring(fmt::format("job.txtpb:8:1: error: device 'cpu:{}': core {} belongs", core, core)));
  CHECK_THAT(text, ContainsSubstring("job.txtpb:9:1: error: device 'cpu:x': 'x' is not a core number"));
  CHECK_THAT(text, ContainsSubstring("job.txtpb:10:1: error: device 'cpu': 'cpu' means all cores"));
  CHECK_THAT(text, ContainsSubstring("\n3 errors"));
}

TEST_CASE("a round that is longer than an epoch is refused") {
  check_all({
      {"batch_size: 32", "batch_size: 10001",
       "6:25: error: a round of 2 learners with period 1 needs 2 mini-batches, but an epoch has 1; use fewer learners "
       "or smaller mini-batches"},
      {"fixed: 2 } }", "fixed: 1 } }\nsynchronization { sma { period: 626 } }",
       "7:25: error: a round of 1 learner with period 626 needs 626 mini-batches, but an epoch has 625; use a "
       "shorter period, fewer learners or smaller mini-batches"},
  });
  CHECK_THAT(refusal(changed("learners { per_device { fixed: 2 } }", "synchronization { sma { period: 2 } }"),
                     {"training.batch_size=20000"}, engine::ErrorKind::kUsage),
             ContainsSubstring("--set training.batch_size=20000: error: a round of"));
  CHECK(parse(changed("fixed: 2", "fixed: 625")).learners_per_device == std::vector<int>{625});
}

TEST_CASE("unstable averaging is refused, counting the learners of all devices") {
  const auto text = [](int learners) {
    return changed("learners { per_device { fixed: 2 } }",
                   fmt::format("learners {{ per_device {{ fixed: {} }} }}\nsynchronization {{ sma {{ alpha: 0.5 "
                               "central_momentum: 0 }} }}",
                               learners));
  };
  CHECK(parse(text(2)).synchronization.pull == 0.5F);
  CHECK_THAT(refusal(text(3)),
             ContainsSubstring("job.txtpb:7:25: error: 3 learners with alpha 0.5 and central_momentum 0 are unstable"));
}

TEST_CASE("all errors are reported at once, in the order of the file") {
  CHECK(refusal("learning_rate { base: nan }\n"
                "model { layers { name: \"a\" input: \"imag\" relu {} } }\n"
                "data { digits {} }\n"
                "\ttraining { batch_size: 0 max_epochs: -1 }\n") ==
        "job.txtpb:1:17: error: base must be a finite number, not nan\n"
        "    1 | learning_rate { base: nan }\n"
        "      |                 ^\n"
        "job.txtpb:2:1: error: the model has no loss; end it with softmax_cross_entropy {} reading the logits and "
        "\"label\"\n"
        "    2 | model { layers { name: \"a\" input: \"imag\" relu {} } }\n"
        "      | ^\n"
        "job.txtpb:2:28: error: layer 'a' reads 'imag', which is neither a layer nor \"image\" or \"label\"; did you "
        "mean "
        "'image'?\n"
        "    2 | model { layers { name: \"a\" input: \"imag\" relu {} } }\n"
        "      |                            ^\n"
        "job.txtpb:4:13: error: batch_size must be at least 1, not 0\n"
        "    4 | \ttraining { batch_size: 0 max_epochs: -1 }\n"
        "      | \t           ^\n"
        "job.txtpb:4:27: error: max_epochs must be in [1, 1000000], not -1\n"
        "    4 | \ttraining { batch_size: 0 max_epochs: -1 }\n"
        "      | \t                         ^\n"
        "5 errors");
}

TEST_CASE("numbers of batch norm out of their range are refused") {
  const std::string text = refusal(
      with_model("model {\n"
                 "layers { name: \"n\" input: \"image\" batch_norm { epsilon: 0 momentum: 0 } }\n"
                 "layers { name: \"m\" input: \"n\" batch_norm { momentum: 1.5 scale { decay_multiplier: -1 } } }\n"
                 "layers { name: \"logits\" input: \"m\" dense { units: 10 } }\n"
                 "layers { name: \"loss\" input: [\"logits\", \"label\"] softmax_cross_entropy {} }\n"
                 "}"));
  for (const char* said : {"error: layer 'n': epsilon must be in [1e-10, 1], not 0\n",
                           "error: layer 'n': momentum must be in (0, 1], not 0\n",
                           "error: layer 'm': momentum must be in (0, 1], not 1.5\n",
                           "error: layer 'm': decay_multiplier must be in [0, 1000], not -1\n", "\n4 errors"}) {
    CHECK_THAT(text, ContainsSubstring(said));
  }
}

TEST_CASE("a layer with invalid values does not hide errors of other layers") {
  const std::string text =
      refusal(with_model("model {\n"
                         "layers { name: \"a\" input: \"image\" conv { filters: 0 kernel: 0 stride: 0 } }\n"
                         "layers { name: \"b\" input: \"aa\" max_pool { kernel: 0 stride: 0 padding: -1 } }\n"
                         "layers { name: \"b\" input: [\"a\", \"label\"] relu {} }\n"
                         "layers { name: \"c\" input: \"b\" }\n"
                         "layers { name: \"loss\" input: [\"c\", \"lable\"] softmax_cross_entropy {} }\n"
                         "}"));
  for (const char* said :
       {"3:42: error: layer 'a': filters must be in [1, 65536], not 0\n",
        "3:53: error: layer 'a': kernel must be in [1, 1024], not 0\n",
        "3:63: error: layer 'a': stride must be in [1, 1024], not 0\n", "4:20: error: layer 'b' reads 'aa', which",
        "4:43: error: layer 'b': kernel must", "4:53: error: layer 'b': stride must", "4:63: error: layer 'b': padding",
        "5:1: error: layer 'b': another layer has this name\n", "5:1: error: layer 'b': relu reads 1 input, not 2",
        "6:1: error: layer 'c': has no kind", "7:36: error: layer 'loss' reads 'lable'", "\n11 errors"}) {
    CHECK_THAT(text, ContainsSubstring(said));
  }
}

TEST_CASE("shapes are checked before a layer with invalid values, but not after it") {
  const std::string loss = "layers { name: \"loss\" input: [\"b\", \"label\"] softmax_cross_entropy {} }\n";
  const std::string behind =
      refusal(with_model("model {\nlayers { name: \"a\" input: \"image\" dense { units: 0 } }\n"
                         "layers { name: \"b\" input: \"a\" conv { filters: 1 kernel: 99 } }\n" +
                         loss + "}"));
  CHECK_THAT(behind, ContainsSubstring("3:43: error: layer 'a': units must be in"));
  CHECK(behind.find("errors") == std::string::npos);
  const std::string before =
      refusal(with_model("model {\nlayers { name: \"a\" input: \"image\" conv { filters: 1 kernel: 99 } }\n"
                         "layers { name: \"b\" input: \"a\" dense { units: 0 } }\n" +
                         loss + "}"));
  CHECK_THAT(before, ContainsSubstring("3:53: error: layer 'a' (conv): a 99x99 window"));
  CHECK_THAT(before, ContainsSubstring("4:39: error: layer 'b': units must be in") && ContainsSubstring("\n2 errors"));
}

TEST_CASE("a model with both zoo and layers gets the errors of both") {
  CHECK_THAT(refusal(with_model("model { zoo { mlp { hidden: 0 } } layers { name: \"a\" input: \"image\" } }")),
             ContainsSubstring("hidden[0] must be in") && ContainsSubstring("layer 'a': has no kind") &&
                 ContainsSubstring("has both zoo and layers") && ContainsSubstring("\n3 errors"));
}

TEST_CASE("layers that do not fit together are refused at the layer") {
  const std::string loss = "layers { name: \"loss\" input: [\"a\", \"label\"] softmax_cross_entropy {} }";
  const auto said = [&](const std::string& layers) { return refusal(with_model("model {\n" + layers + "\n}")); };
  CHECK_THAT(said("layers { name: \"a\" input: \"image\" conv { filters: 8 kernel: 29 } }\n" + loss),
             ContainsSubstring("job.txtpb:3:53: error: layer 'a' (conv): a 29x29 window"));
  CHECK_THAT(said("layers { name: \"a\" input: \"image\" max_pool { kernel_height: 29 kernel_width: 2 } }\n" + loss),
             ContainsSubstring("job.txtpb:3:46: error: layer 'a' (max_pool): a 29x2 window"));
  CHECK_THAT(said("layers { name: \"a\" input: \"image\" max_pool { kernel: 2 padding: 2 } }\n" + loss),
             ContainsSubstring("job.txtpb:3:56: error: layer 'a' (max_pool): padding must be smaller"));
  CHECK_THAT(said("layers { name: \"a\" input: \"image\" softmax {} }\n" + loss),
             ContainsSubstring("layer 'a' (softmax): needs a vector of features per example, not 1x1x28x28"));
  CHECK_THAT(said("layers { name: \"a\" input: \"image\" conv { filters: 4 kernel: 3 groups: 2 } }\n" + loss),
             ContainsSubstring("job.txtpb:3:63: error: layer 'a' (conv): groups must divide the 1 channels"));
  CHECK_THAT(said("layers { name: \"a\" input: \"b\" relu {} } layers { name: \"b\" input: \"a\" relu {} }\n" + loss),
             ContainsSubstring("job.txtpb:3:1: error: layers form a cycle: 'a' reads 'b' reads 'a'"));
  CHECK_THAT(
      said("layers { name: \"a\" input: \"image\" dense { units: 9 } }\n" + loss),
      ContainsSubstring("job.txtpb:3:43: error: layer 'a' (dense): gives 'loss' 9 logits per example, but the data has "
                        "10 classes; write units: 10\n"));
  CHECK_THAT(said("layers { name: \"a\" input: \"image\" input: \"lable\" relu {} }\n" + loss),
             ContainsSubstring("job.txtpb:3:35: error: layer 'a' reads 'lable'"));
}

TEST_CASE("values of layers out of range are refused at the value") {
  const auto said = [&](const std::string& kind) {
    return refusal(with_model("model { layers { name: \"a\" input: \"image\"\n" + kind + "\n} }"));
  };
  CHECK_THAT(said("conv { filters: 0 kernel: 3 }"),
             ContainsSubstring("job.txtpb:3:8: error: layer 'a': filters must be in [1, 65536], not 0\n"));
  CHECK_THAT(said("conv { kernel: 3 }"), ContainsSubstring("job.txtpb:3:1: error: layer 'a': filters is missing"));
  CHECK_THAT(said("max_pool { kernel: 2 kernel_height: 3 }"),
             ContainsSubstring("job.txtpb:3:12: error: layer 'a': kernel is given for both directions at once"));
  CHECK_THAT(said("max_pool { kernel_width: 2 }"),
             ContainsSubstring("job.txtpb:3:12: error: layer 'a': kernel_width is given without kernel_height\n"));
  CHECK_THAT(said("conv { filters: 1 kernel: 3 dilation: 0 groups: 0 }"),
             ContainsSubstring("layer 'a': dilation must be in [1, 1024], not 0\n") &&
                 ContainsSubstring("layer 'a': groups must be in [1, 65536], not 0\n"));
  CHECK_THAT(
      said("conv { filters: 1 kernel: 3 padding_mode: SAME padding: 1 }"),
      ContainsSubstring("job.txtpb:3:48: error: layer 'a': padding is given, but padding_mode: SAME chooses it"));
  CHECK_THAT(said("max_pool { kernel: 3 padding_mode: SAME ceil_mode: true }"),
             ContainsSubstring("job.txtpb:3:41: error: layer 'a': ceil_mode does nothing with padding_mode: SAME"));
  CHECK_THAT(said("max_pool { kernel: 3 count_padding: true }"),
             ContainsSubstring("job.txtpb:3:22: error: layer 'a': count_padding is for average_pool"));
  CHECK_THAT(said("average_pool {}"), ContainsSubstring("job.txtpb:3:1: error: layer 'a': kernel is missing\n"));
  CHECK_THAT(said("padded_shortcut { stride: 0 }"),
             ContainsSubstring("layer 'a': channels is missing: how many the output has\n") &&
                 ContainsSubstring("job.txtpb:3:19: error: layer 'a': stride must be in [1, 1024], not 0\n"));
  CHECK_THAT(said("softmax_cross_entropy { weight: 0 }"),
             ContainsSubstring("job.txtpb:3:25: error: layer 'a': weight must be in (0, 1000], not 0\n"));
  CHECK_THAT(said("local_response_norm { size: 4 k: 0 alpha: -1 beta: 11 }"),
             ContainsSubstring("job.txtpb:3:23: error: layer 'a': size must be odd, not 4\n") &&
                 ContainsSubstring("layer 'a': k must be in [1e-05, 1000], not 0\n") &&
                 ContainsSubstring("layer 'a': alpha must be in [0, 1000], not -1\n") &&
                 ContainsSubstring("layer 'a': beta must be in [0, 10], not 11\n"));
  CHECK_THAT(said("leaky_relu { slope: -0.5 }"),
             ContainsSubstring("job.txtpb:3:14: error: layer 'a': slope must be in [0, 1], not -0.5\n"));
  CHECK_THAT(said("softmax_cross_entropy { label_smoothing: 1 }"),
             ContainsSubstring("job.txtpb:3:25: error: layer 'a': label_smoothing must be in [0, 1), not 1\n"));
  CHECK_THAT(said("dropout { ratio: 1 }"),
             ContainsSubstring("job.txtpb:3:11: error: layer 'a': ratio must be in [0, 1), not 1\n"));
  CHECK_THAT(said("dense { units: 3 use_bias: false bias {} }"),
             ContainsSubstring("job.txtpb:3:34: error: layer 'a': bias is described, but use_bias is false\n"));
  CHECK_THAT(said("dense { units: 3 weight { initializer { uniform { low: 2 high: 1 } } } }"),
             ContainsSubstring("job.txtpb:3:51: error: layer 'a': low must be below high: 2 is not below 1\n"));
  CHECK_THAT(said("dense { units: 3 weight { initializer { gaussian { stddev: 0 } } } }"),
             ContainsSubstring("job.txtpb:3:52: error: layer 'a': stddev must be in [1e-06, 1000], not 0\n"));
  CHECK_THAT(said("dense { units: 3 weight { initializer { gaussian { stddev: 3e38 mean: -3e38 } } } }"),
             ContainsSubstring("layer 'a': stddev must be in [1e-06, 1000], not 3e+38\n") &&
                 ContainsSubstring("layer 'a': mean must be in [-1000, 1000], not -3e+38\n"));
  CHECK_THAT(said("dense { units: 3 bias { initializer { uniform { low: -3e38 high: 3e38 } } } }"),
             ContainsSubstring("layer 'a': low must be in [-1000, 1000], not -3e+38\n") &&
                 ContainsSubstring("layer 'a': high must be in [-1000, 1000], not 3e+38\n"));
  CHECK_THAT(said("dense { units: 3 bias { initializer { constant { value: 1e9 } } } }"),
             ContainsSubstring("layer 'a': value must be in [-1000, 1000], not 1000000000\n"));
  CHECK_THAT(
      said("dense { units: 3 weight { learning_rate_multiplier: -1 } }"),
      ContainsSubstring("job.txtpb:3:27: error: layer 'a': learning_rate_multiplier must be in [0, 1000], not -1"));
  CHECK_THAT(said(""), ContainsSubstring("job.txtpb:2:9: error: layer 'a': has no kind; give it one"));
}

TEST_CASE("models too large for any machine are refused") {
  CHECK_THAT(refusal(with_model("model { zoo { mlp { hidden: [1048576, 1048576] } } }")),
             ContainsSubstring("job.txtpb:2:39: error: layer 'dense2': its weight would be 1048576x1048576 numbers"));
  const std::string text =
      refusal(with_model("model {\nlayers { name: \"a\" input: \"image\" dense { units: 1048576 } }\n"
                         "layers { name: \"b\" input: \"a\" dense { units: 1048576 } }\n"
                         "layers { name: \"c\" input: \"b\" dense { units: 1048576 } }\n"
                         "layers { name: \"d\" input: \"c\" dense { units: 10 } }\n"
                         "layers { name: \"loss\" input: [\"d\", \"label\"] softmax_cross_entropy {} }\n}"));
  CHECK_THAT(text, ContainsSubstring("job.txtpb:4:39: error: layer 'b': its weight would be 1048576x1048576 numbers"));
  CHECK_THAT(text, ContainsSubstring("job.txtpb:5:39: error: layer 'c': its weight would be 1048576x1048576 numbers"));
  CHECK_THAT(text, ContainsSubstring("\n2 errors"));
  CHECK_THAT(refusal(with_model("model { zoo { mlp { hidden: [8, 0] } } }")),
             ContainsSubstring("job.txtpb:2:33: error: hidden[1] must be in [1, 1048576], not 0"));
}

TEST_CASE("errors that follow from another error are not reported") {
  // There are no errors for the layers' sizes or for the length of a round.
  const std::string batch = refusal(changed("batch_size: 32", "batch_size: 2000000000"));
  CHECK_THAT(batch, ContainsSubstring("4:12: error: batch_size 2000000000 is larger than the training set of digits"));
  CHECK(batch.find("errors") == std::string::npos);
  const std::string period =
      refusal(changed("learners {", "synchronization { sma { period: 1000000000 } }\nlearners {"));
  CHECK_THAT(period, ContainsSubstring("6:25: error: period must be in [1, 1000], not 1000000000"));
  CHECK(period.find("errors") == std::string::npos);
  // Only the first of several outputs that are too large is reported.
  const std::string wide =
      refusal(changed("batch_size: 32", "batch_size: 20000"),
              {"learners.per_device.fixed=1",
               "model={ layers { name: 'a' input: 'image' conv { filters: 4096 kernel: 1 } } layers { name: 'b' input: "
               "'a' relu {} "
               "} layers { name: 'c' input: 'b' dense { units: 10 } } layers { name: 'l' input: ['c', 'label'] "
               "softmax_cross_entropy {} } }"},
              engine::ErrorKind::kUsage);
  CHECK_THAT(wide, ContainsSubstring("layer 'a': its output would be 20000x4096x28x28"));
  CHECK(wide.find("layer 'b'") == std::string::npos);
}

TEST_CASE("only the first 50 errors are shown") {
  std::string hidden = "0";
  for (int i = 0; i < 999; ++i) hidden += ",0";
  CHECK_THAT(refusal(with_model("model { zoo { mlp { hidden: [" + hidden + "] } } }")),
             ContainsSubstring("\n1000 errors, of which 50 are shown"));
}

}  // namespace arbalest::jobs
