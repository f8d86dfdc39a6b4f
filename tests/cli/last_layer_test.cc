// A model whose last layer is an activation is used like any other.
#include <algorithm>
#include <sstream>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"

namespace arbalest::tests {

namespace {

using nlohmann::json;

std::string job_ending_with(const std::string& activation) {
  return "model { layers { name: \"fc\" input: \"image\" dense { units: 10 } }\n"
         "  layers { name: \"last\" input: \"fc\" " +
         activation +
         " {} }\n"
         "  layers { name: \"loss\" input: [\"last\", \"label\"] softmax_cross_entropy {} } }\n"
         "data { digits {} } training { batch_size: 64 max_epochs: 1 seed: 1 }\n"
         "learning_rate { base: 0.05 } learners { per_device { fixed: 1 } } devices: \"cpu\"\n";
}

}  // namespace

TEST_CASE("a model whose last layer is an activation is evaluated by class, predicts and is timed") {
  for (const std::string activation : {"relu", "sigmoid"}) {
    CAPTURE(activation);
    const Program program;
    write_text(program / "job.txtpb", job_ending_with(activation));
    write_text(program / "a.png", png(gradient(28, 28, 1)));
    const Completed trained = program.run({"train", "job.txtpb", "--output", "run", "--quiet"});
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);

    const Completed by_class = program.run({"evaluate", "run", "--json", "--per-class"});
    INFO(by_class.err);
    REQUIRE(by_class.exit_code == 0);
    const json report = json::parse(by_class.out);
    double correct = 0.0;
    for (std::size_t label = 0; label < 10; ++label) correct += report["confusion_matrix"][label][label].get<double>();
    CHECK(correct / report["examples"].get<double>() == summary_of(program / "run")["test_accuracy"].get<double>());

    const Completed predicted = program.run({"predict", "run", "a.png", "--top", "10"});
    INFO(predicted.err);
    REQUIRE(predicted.exit_code == 0);
    // Outputs of at most 1 and at least 0: a probability is at most e times another one.
    const json top = json::parse(predicted.out)["top"];
    REQUIRE(top.size() == 10);
    const double most = top.front()["probability"];
    const double least = top.back()["probability"];
    CHECK(least > 0.0);
    if (activation == "sigmoid") CHECK(most <= 2.7183 * least);

    if (activation == "relu") continue;
    CHECK_THAT(program.run({"predict", "run", "--latency"}).out, ContainsSubstring("images/s in mini-batches of"));
  }
}

}  // namespace arbalest::tests
