// Jobs with valid syntax and invalid values.
#include <fmt/format.h>

#include "engine/backends/cuda_devices.h"
#include "engine/host/topology.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

TEST_CASE("numbers out of their range are refused") {
  check_bad_values({
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
  check_bad_values({
      {"base: 0.01", "base: nan", "5:17: error: base must be a finite number, not nan"},
      {"base: 0.01", "base: -nan", "5:17: error: base must be a finite number, not nan"},
      {"base: 0.01", "base: 1e999", "5:17: error: base must be a finite number; the largest is 1.8e+308"},
      {"base: 0.01", "base: -inf", "5:17: error: base must be a finite number; the largest is 1.8e+308"},
      {"learners", "optimizer { sgd { weight_decay: 1e39 } }\nlearners",
       "6:19: error: weight_decay must be a finite number; the largest is 3.4e+38"},
  });
}

TEST_CASE("drops of the learning rate must be complete and in order") {
  check_bad_values({
      {"base: 0.01", "base: 1 multistep {}",
       "5:25: error: multistep has no drop; add one, as in drop { epoch: 8 factor: 0.1 }, or choose fixed {}"},
      {"base: 0.01", "base: 1 multistep { drop { epoch: 8 factor: 0.1 } drop { epoch: 8 factor: 0.1 } }",
       "5:74: error: decay steps must be in ascending order: epoch 8 comes after epoch 8"},
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
  check_bad_values({
      schedule("inverse {}", "25: error: gamma is missing: how fast the rate falls, such as 0.1"),
      schedule("inverse { gamma: 0 }", "35: error: gamma must be in (0, 1000], not 0"),
      schedule("inverse { gamma: 1 power: -1 }", "44: error: power must be in (0, 100], not -1"),
      schedule("step { factor: 1 }", "25: error: epochs is missing: the epochs between two decay steps, such as 10"),
      schedule("step { epochs: 1 }", "25: error: factor is missing: what the rate is multiplied by, such as 0.1"),
      schedule("step { epochs: 0 factor: 1 }", "32: error: epochs must be in [0.001, 1000000], not 0"),
      schedule("step { epochs: 1 factor: 0 }", "42: error: factor must be in (0, 1], not 0"),
      schedule("exponential {}",
               "25: error: factor is missing: the factor of the learning rate for each epoch, such as 0.9"),
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

TEST_CASE("restarts of the learning rate that cannot be are refused") {
  const auto schedule = [](const std::string& text, const std::string& said) {
    return BadValue{"base: 0.01", "base: 1 " + text, "5:" + said};
  };
  check_bad_values({
      schedule(
          "restart { epoch: 4 }",
          "25: error: restart needs a schedule with an end: polynomial, cosine or one_cycle; with another schedule "
          "leave it out"),
      schedule("step { epochs: 1 factor: 1 } restart { epoch: 4 }",
               "54: error: restart needs a schedule with an end: "
               "polynomial, cosine or one_cycle; with another schedule leave it out"),
      schedule("cosine {} restart {}", "35: error: epoch is missing: when the schedule starts anew, such as 10"),
      schedule("cosine {} restart { epoch: 0 }", "45: error: epoch must be above 0, not 0"),
      schedule("cosine {} restart { epoch: 4 } restart { epoch: 4 }",
               "66: error: restarts must be in ascending order: epoch 4 comes after epoch 4"),
      schedule("cosine {} restart { epoch: 2 } warm_up { epochs: 2 }",
               "45: error: the restart at epoch 2 comes before the end of the warm-up, at epoch 2"),
      schedule("cosine {} restart { epoch: 10 }",
               "45: error: the restart at epoch 10 must come before the end of the job (training.max_epochs), or set "
               "its epochs"),
      schedule("cosine {} restart { epoch: 4 epochs: 0 }", "54: error: epochs must be in (0, 1000000], not 0"),
      schedule("cosine {} restart { epoch: 4 factor: 2 }", "54: error: factor must be in (0, 1], not 2"),
      schedule("cosine {} restart { epoch: 4 factor: 0 }", "54: error: factor must be in (0, 1], not 0"),
  });
}

TEST_CASE("a warm-up must end before the job and before the first drop") {
  const auto schedule = [](const std::string& text, const std::string& said) {
    return BadValue{"base: 0.01", "base: 1 " + text, "5:" + said};
  };
  check_bad_values({
      schedule("warm_up {}", "25: error: epochs is missing: how long the rate grows, such as 5"),
      schedule("warm_up { epochs: 0 }", "35: error: epochs must be in (0, 1000000], not 0"),
      schedule("warm_up { epochs: 1 start_factor: 1.5 }", "45: error: start_factor must be in [0, 1], not 1.5"),
      schedule("warm_up { epochs: 10 }",
               "35: error: the warm-up of 10 epochs must end before the job, which takes 10 epochs"),
      schedule("warm_up { epochs: 2 } multistep { drop { epoch: 2 factor: 1 } }",
               "66: error: the decay step at epoch 2 comes before the end of the warm-up, at epoch 2"),
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
  check_bad_values({
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
      optimizer("adagrad { epsilon: 0 }", "23: error: epsilon must be in [1e-12, 10], not 0"),
      optimizer("adagrad { weight_decay: 2 }", "23: error: weight_decay must be in [0, 1], not 2"),
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
  check_bad_values({
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
  check_bad_values({
      {"base: 0.01", "base: 1 with_learners: 77", "5:25: error: '77' " + values},
      {"base: 0.01", "base: 1 with_learners: RATE_SCALING_UNSPECIFIED",
       "5:25: error: 'RATE_SCALING_UNSPECIFIED' " + values},
  });
}

TEST_CASE("a precision that is unknown, or not supported by the job's devices, is refused") {
  const std::string values = "is not a value of precision (values: FP32, TF32, BF16, AUTO)";
  check_bad_values({
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

TEST_CASE("a precision that is chosen by time is refused with kernels that time nothing") {
  const std::string reason =
      "error: precision AUTO times training steps, and kernels FIXED times nothing; name a precision, such as BF16, or "
      "leave kernels out";
  check_bad_values({{"max_epochs: 10", "kernels: FIXED precision: AUTO", "4:42: " + reason}});
  CHECK_THAT(
      refusal(changed("max_epochs: 10", "precision: AUTO"), {"training.kernels=FIXED"}, engine::ErrorKind::kUsage),
      ContainsSubstring("--set training.kernels=FIXED: " + reason));
  CHECK_THAT(
      refusal(changed("max_epochs: 10", "kernels: FIXED"), {"training.precision=AUTO"}, engine::ErrorKind::kUsage),
      ContainsSubstring("--set training.precision=AUTO: " + reason));
}

TEST_CASE("text that cannot name a file is refused") {
  check_bad_values({
      {"\"job\"", "\"\\377\"", "1:1: error: name is not valid UTF-8"},
      {"\"job\"", "\"a\\nb\"", "1:1: error: name holds a control character"},
      {"\"job\"", "\"../up\"",
       "1:1: error: name becomes the name of a directory: use only letters, digits, '-', '_' and '.', and do not "
       "start with '.'; '../up' breaks this rule"},
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
  check_bad_values({
      {"batch_size: 32", "batch_size: 10001",
       "6:25: error: a round of 2 learners with period 1 needs 2 mini-batches, but an epoch has 1; use fewer learners "
       "or smaller mini-batches"},
      {"fixed: 2 } }", "fixed: 1 } }\nsynchronization { sma { period: 626 } }",
       "7:25: error: a round of 1 learner with period 626 needs 626 mini-batches, but an epoch has 625; use a "
       "period of at most 625, fewer learners or smaller mini-batches"},
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
