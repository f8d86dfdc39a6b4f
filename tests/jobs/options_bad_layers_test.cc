// Jobs whose models or layers have invalid values.
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

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
  CHECK_THAT(
      said("max_pool { kernel: 2 kernel_height: 3 }"),
      ContainsSubstring("job.txtpb:3:12: error: layer 'a': kernel already sets both directions; remove kernel or "));
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

}  // namespace arbalest::jobs
