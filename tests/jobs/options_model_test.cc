// Checks of the model that depend on the rest of the job.
#include <algorithm>

#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

TEST_CASE("batch norm needs more than one number of each channel") {
  const auto job = [](const std::string& before) {
    return with_model("model { layers { name: \"a\" input: \"image\" " + before +
                      " } layers { name: \"b\" input: \"a\" batch_norm {} } layers { name: \"d\" input: \"b\" dense { "
                      "units: 10 } } layers { name: \"l\" input: \"d\" input: \"label\" softmax_cross_entropy {} } }");
  };
  const std::string dense = job("dense { units: 8 }");
  CHECK(refusal(dense, {"training.batch_size=1"}, engine::ErrorKind::kUsage) ==
        "--set training.batch_size=1: error: batch_size must be at least 2, not 1: layer 'b' (batch norm) has only one "
        "number "
        "of each channel to learn from");
  CHECK(parse(dense, {"training.batch_size=2"}).training.batch_size == 2);
  CHECK(parse(job("conv { filters: 8 kernel: 3 }"), {"training.batch_size=1"}).training.batch_size == 1);
}

TEST_CASE("a softmax in front of a loss that applies softmax is a warning") {
  const auto warnings = [](const std::string& softmax, const std::string& logits) {
    return parse(with_model("model { layers { name: \"d\" input: \"image\" dense { units: 10 } } " + softmax +
                            " layers { name: \"l\" input: \"" + logits +
                            "\" input: \"label\" softmax_cross_entropy {} } }"))
        .warnings;
  };
  const std::string expected = "the loss 'l' takes logits and applies softmax itself; remove layer 's'";
  const auto with = warnings("layers { name: \"s\" input: \"d\" softmax {} }", "s");
  CHECK(std::ranges::count(with, expected) == 1);
  CHECK(std::ranges::count(warnings("", "d"), expected) == 0);
}

TEST_CASE("padding behind the last pixel must fit the rest of the window") {
  const auto said = [](const std::string& kind) {
    return refusal(with_model("model { layers { name: \"a\" input: \"image\"\n" + kind + "\n} }"));
  };
  CHECK_THAT(said("max_pool { kernel: 3 padding_mode: SAME extra_padding_width: 1 extra_padding_height: 0 }"),
             ContainsSubstring("layer 'a': extra_padding_height is given, but padding_mode: SAME chooses it"));
  CHECK_THAT(said("max_pool { kernel: 3 extra_padding: 1 ceil_mode: true }"),
             ContainsSubstring("layer 'a': ceil_mode chooses the padding behind the last pixel"));
  CHECK_THAT(said("max_pool { kernel: 3 padding: 1 extra_padding: 2 }"),
             ContainsSubstring("the sum of padding and extra_padding must be smaller than the kernel"));
  CHECK_THAT(said("conv { filters: 1 kernel: 3 extra_padding: -1 }"),
             ContainsSubstring("layer 'a': extra_padding must be at least 0, which leaves no padding there, not -1"));
  CHECK_THAT(said("max_pool { kernel: 3 padding: 1 extra_padding_height: 0 extra_padding_width: -2 }"),
             ContainsSubstring("layer 'a': extra_padding_width must be at least -1"));
  CHECK_THAT(said("conv { filters: 1 kernel: 3 extra_padding: 1025 }"),
             ContainsSubstring("layer 'a': extra_padding must be in [-1024, 1024], not 1025"));
  CHECK_THAT(said("max_pool { kernel: 3 padding: 1 extra_padding: -1 ceil_mode: true }"),
             ContainsSubstring("layer 'a': ceil_mode chooses the padding behind the last pixel"));
}

TEST_CASE("a job chooses the top-k accuracies of a model of the zoo or of a list of layers") {
  const auto metrics = [](const std::string& model) {
    std::string names;
    const JobOptions job = parse(with_model("model { " + model + " }"));
    for (const dataflow::Metric& metric : job.graph->metrics()) names += metric.name + " ";
    return names;
  };
  const std::string layers =
      "layers { name: \"accuracy\" input: \"image\" dense { units: 10 } } layers { name: \"l\" input: \"accuracy\" "
      "input: \"label\" softmax_cross_entropy {} } ";
  const std::string listed = "layers { name: \"a\" input: \"accuracy\" input: \"label\" accuracy { top_k: 4 } }";
  CHECK(metrics("zoo { lenet {} }") == "loss accuracy top5_accuracy ");
  CHECK(metrics("zoo { lenet {} } accuracy {}") == "loss accuracy top5_accuracy ");
  CHECK(metrics("zoo { lenet {} } accuracy { top_k: 3 top_k: 2 }") == "loss accuracy top3_accuracy top2_accuracy ");
  CHECK(metrics(layers + "accuracy { top_k: 3 }") == "loss accuracy top3_accuracy ");
  CHECK(metrics(layers + listed) == "loss accuracy top4_accuracy ");
}

TEST_CASE("a wrong top_k is told with its place") {
  const auto said = [](const std::string& accuracy) {
    return refusal(with_model("model { zoo { lenet {} }\n" + accuracy + "\n}"));
  };
  CHECK_THAT(said("accuracy { top_k: 1 }"),
             ContainsSubstring("job.txtpb:3:12: error: top_k must be at least 2, not 1; top-1 accuracy is `accuracy`"));
  CHECK_THAT(said("accuracy { top_k: [3, 0] }"), ContainsSubstring("top_k must be at least 2, not 0"));
  CHECK_THAT(said("accuracy { top_k: -4 }"), ContainsSubstring("top_k must be at least 2, not -4"));
  CHECK_THAT(said("accuracy { top_k: 3 top_k: 3 }"), ContainsSubstring("top_k has 3 twice"));
  CHECK_THAT(said("accuracy { top_k: [2, 3, 4, 5, 6, 7] }"),
             ContainsSubstring("top_k may have at most 5 numbers, not 6"));
  CHECK_THAT(said("accuracy { top_k: 10 }"),
             ContainsSubstring("job.txtpb:3:12: error: layer 'accuracy' (accuracy): top_k must be below the number of "
                               "classes, 10, not 10; otherwise every label is among them"));
  CHECK_THAT(said("accuracy { top_k: 3 top_k: 11 }"), ContainsSubstring("not 11"));
  const std::string both = refusal(with_model(
      "model { layers { name: \"d\" input: \"image\" dense { units: 10 } } layers { name: \"l\" input: \"d\" input: "
      "\"label\" softmax_cross_entropy {} } layers { name: \"a\" input: \"d\" input: \"label\" accuracy { top_k: 10 } "
      "}\naccuracy {}\n}"));
  CHECK_THAT(both,
             ContainsSubstring("job.txtpb:3:1: error: layer 'a' is an accuracy layer already; give it the top_k"));
  CHECK_THAT(both, ContainsSubstring("job.txtpb:2:193: error: layer 'a' (accuracy): top_k must be below"));
}

TEST_CASE("a model that predicts numbers has no accuracies") {
  const std::string ratings = "data { ratings { directory: \"ratings\" sizes: [20, 12] } }\n";
  const auto said = [&](const std::string& model, const std::string& scheme) {
    return refusal(ratings + "model { " + model + "\n}\n" + scheme + "learners { per_device { fixed: 1 } }");
  };
  const std::string factorization = "zoo { matrix_factorization { width: 4 mean: 3.5 } }\n";
  const std::string layers =
      "layers { name: \"e\" input: \"ids\" embedding { column: 0 width: 1 } } layers { name: \"l\" input: \"e\" input: "
      "\"label\" squared_error {} }\n";
  const std::string expected = "accuracy is for classifiers, but the model predicts numbers; remove it";
  for (const std::string& model : {factorization, layers}) {
    CHECK_THAT(said(model + "accuracy { top_k: 3 }", ""), ContainsSubstring("job.txtpb:3:1: error: " + expected));
    CHECK_THAT(said(model + "accuracy {}", ""), ContainsSubstring(expected));
  }
  CHECK_THAT(
      said(factorization + "accuracy {}", "synchronization { hogwild {} }\n"),
      ContainsSubstring("accuracy does not go with hogwild on ratings, whose steps are single ratings; remove it"));
  CHECK_THAT(said(layers + "layers { name: \"a\" input: \"e\" input: \"label\" accuracy { top_k: 2 } }", ""),
             ContainsSubstring("layer 'a'"));
}

}  // namespace arbalest::jobs
