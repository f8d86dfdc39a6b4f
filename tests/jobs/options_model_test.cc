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
             ContainsSubstring("padding and extra_padding must be smaller than the kernel together"));
  CHECK_THAT(said("conv { filters: 1 kernel: 3 extra_padding: -1 }"),
             ContainsSubstring("layer 'a': extra_padding must be at least 0, which leaves no padding there, not -1"));
  CHECK_THAT(said("max_pool { kernel: 3 padding: 1 extra_padding_height: 0 extra_padding_width: -2 }"),
             ContainsSubstring("layer 'a': extra_padding_width must be at least -1"));
  CHECK_THAT(said("conv { filters: 1 kernel: 3 extra_padding: 1025 }"),
             ContainsSubstring("layer 'a': extra_padding must be in [-1024, 1024], not 1025"));
  CHECK_THAT(said("max_pool { kernel: 3 padding: 1 extra_padding: -1 ceil_mode: true }"),
             ContainsSubstring("layer 'a': ceil_mode chooses the padding behind the last pixel"));
}

}  // namespace arbalest::jobs
