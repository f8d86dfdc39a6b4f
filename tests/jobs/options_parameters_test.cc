// Options of a job for single parameters: initialize, training.freeze and learning_rate.multiplier.
#include <filesystem>
#include <map>

#include "dataflow/parameter_rules.h"
#include "options/throughput_key.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

// A job with batch norm.
std::string normalized(const std::string& training, const std::string& learning_rate = "") {
  return "name: \"job\"\nmodel { zoo { lenet { batch_norm: true } } }\ndata { digits {} }\nlearning_rate { base: "
         "0.01 " +
         learning_rate + "}\nlearners { per_device { fixed: 1 } }\ntraining { " + training + " }\n";
}

struct BadJob {
  std::string job;
  std::string said;  // first line, after "job.txtpb:"
};

// The good job with `training`, `learning_rate` or `initialize` as given.
std::string freezing(const std::string& text) { return changed("max_epochs: 10", text); }
std::string multiplying(const std::string& text) { return changed("base: 0.01", "base: 1 " + text); }
std::string initializing(const std::string& text) { return std::string(kGoodJob) + "initialize { " + text + " }\n"; }

std::map<std::string, dataflow::ParameterSpec> parameters_of(const JobOptions& job) {
  std::map<std::string, dataflow::ParameterSpec> parameters;
  for (dataflow::NamedParameter& parameter : dataflow::named_parameters(*job.graph)) {
    parameters.emplace(parameter.name, parameter.spec);
  }
  return parameters;
}

}  // namespace

TEST_CASE("patterns freeze parameters and set factors, and the last one that matches counts") {
  const auto parameters =
      parameters_of(parse(normalized("freeze: \"conv1\" freeze: \"*2.bias\"",
                                     "multiplier { parameters: \"*\" factor: 0.5 } "
                                     "multiplier { parameters: [\"dense?.weight\", \"bn2\"] factor: 10 } ")));
  CHECK(parameters.at("conv1.weight").is_frozen);
  CHECK_FALSE(parameters.at("conv2.weight").is_frozen);
  CHECK(parameters.at("bn2.bias").is_frozen);
  CHECK_FALSE(parameters.at("bn2.weight").is_frozen);
  CHECK(parameters.at("bn2.weight").learning_rate_multiplier == 10.0F);
  CHECK(parameters.at("dense1.weight").learning_rate_multiplier == 10.0F);
  CHECK(parameters.at("logits.bias").learning_rate_multiplier == 0.5F);
}

TEST_CASE("a factor multiplies the layer's own, and a frozen layer freezes its statistics") {
  std::string text = multiplying("multiplier { parameters: \"conv1\" factor: 5 }");
  const JobOptions quick = parse(text.replace(text.find("lenet"), 5, "cifar_quick"));
  CHECK(parameters_of(quick).at("conv1.bias").learning_rate_multiplier == 10.0F);
  CHECK(parameters_of(quick).at("conv1.weight").learning_rate_multiplier == 5.0F);
  CHECK(parameters_of(quick).at("conv2.bias").learning_rate_multiplier == 2.0F);

  const auto parameters = parameters_of(parse(normalized("freeze: \"bn1\"")));
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    CHECK(parameters.at(std::string("bn1.") + name).is_frozen);
    CHECK_FALSE(parameters.at(std::string("bn2.") + name).is_frozen);
  }
}

TEST_CASE("wrong patterns and factors are refused with their place") {
  const std::vector<BadJob> values = {
      {freezing("freeze: \"conv9\""),
       "4:27: error: no parameter or layer of the model matches \"conv9\"; did you mean 'conv1'?"},
      {freezing("freeze: \"block*\""),
       "4:27: error: no parameter or layer of the model matches \"block*\"; its first is 'conv1.weight', and `arbalest "
       "inspect` lists its layers"},
      {freezing("freeze: \"\""),
       "4:27: error: the pattern is empty; name a parameter or a layer, such as \"fc\", or several with \"fc*\""},
      {freezing("freeze: \"conv1\" freeze: \"*\""),
       "4:43: error: freeze leaves no parameter to train; freeze fewer layers"},
      {normalized("freeze: \"bn1.running_mean\""),
       "6:12: error: \"bn1.running_mean\" freezes 'bn1.running_mean' but not 'bn1.running_var'; freeze both, as with "
       "\"bn1.running_*\""},
      {multiplying("multiplier { parameters: \"dense1\" factor: 0 }"),
       "5:59: error: factor must be in (0, 1000], not 0; to leave parameters as they are, use training { freeze: "
       "\"dense1\" }"},
      {multiplying("multiplier { parameters: \"dense1\" factor: -1 }"),
       "5:59: error: factor must be in (0, 1000], not -1"},
      {multiplying("multiplier { parameters: \"dense1\" }"),
       "5:25: error: factor is missing: what the learning rate is multiplied by, such as 10"},
      {multiplying("multiplier { factor: 2 }"),
       "5:25: error: parameters is missing: patterns of parameters or layers, such as \"fc\""},
      {multiplying("multiplier { parameters: [\"dense1\", \"cf\"] factor: 2 }"),
       "5:61: error: no parameter or layer of the model matches \"cf\"; its first is 'conv1.weight', and `arbalest "
       "inspect` lists its layers"},
      {normalized("freeze: \"conv1\"", "multiplier { parameters: [\"bn1\", \"conv1\"] factor: 2 } "),
       "4:61: error: \"conv1\" matches only frozen parameters or running statistics, which have no learning rate"},
      {initializing("fresh: \"dense1\""),
       "7:1: error: initialize.from is missing: the safetensors file, or the directory of the run, to start from"},
      {initializing("from: \"\""),
       "7:14: error: initialize.from is missing: the safetensors file, or the directory of the run, to start from"},
      {initializing("from: \"x\" fresh: \"dense9\""),
       "7:24: error: no parameter or layer of the model matches \"dense9\"; did you mean 'dense1'?"},
      {initializing("from: \"x\" ignore: \"\""),
       "7:24: error: the pattern is empty; name a parameter or a layer, such as \"fc\", or several with \"fc*\""},
      {initializing("from: \"x\" rename { to: \"*\" }"),
       "7:24: error: from is missing: the name that a tensor has in the file, such as \"module.*\""},
      {initializing("from: \"x\" rename { from: \"a*\" }"),
       "7:24: error: to is missing: the tensor's new name, such as \"*\""},
      {initializing("from: \"x\" rename { from: \"a*\" to: \"b\" }"),
       "7:44: error: \"a*\" and \"b\" must have the same '*' and '?' in the same order, because those of `to` stand "
       "for "
       "what those of `from` match"},
  };
  for (const BadJob& value : values) {
    INFO(value.job);
    const std::string text = refusal(value.job);
    CHECK(text.substr(0, text.find('\n')) == "job.txtpb:" + value.said);
  }
}

TEST_CASE("a relative path begins at the job file, and the resolved job means the same everywhere") {
  const std::string text = initializing(
      "from: \"runs/a.safetensors\" fresh: \"logits\" ignore: \"head\" "
      "rename { from: \"module.*\" to: \"*\" }");
  const JobOptions job = parse_job(SourceText("/some/where/job.txtpb", text));
  REQUIRE(job.initialize.has_value());
  CHECK(job.initialize->path == "/some/where/runs/a.safetensors");
  REQUIRE(job.initialize->fresh.size() == 1);
  CHECK(job.initialize->fresh[0].text() == "logits");
  CHECK(job.initialize->ignore.at(0).text() == "head");
  CHECK(job.initialize->renames.at(0).from.text() == "module.*");
  CHECK(job.initialize->renames.at(0).to == "*");
  const JobOptions again = parse_job(SourceText("/else/where/job.txtpb", job.resolved_text));
  CHECK(again.initialize->path == job.initialize->path);
  CHECK(again.resolved_text == job.resolved_text);
  CHECK(parse_job(SourceText("/a/job.txtpb", initializing("from: \"../b.safetensors\""))).initialize->path ==
        "/b.safetensors");
}

TEST_CASE("rules are part of the resolved job") {
  const JobOptions job =
      parse(normalized("freeze: \"conv1\" freeze: \"bn1\"", "multiplier { parameters: [\"dense*\"] factor: 10 } "));
  const JobOptions again = parse(job.resolved_text);
  CHECK(again.resolved_text == job.resolved_text);
  const auto parameters = parameters_of(job);
  for (const auto& [name, spec] : parameters_of(again)) {
    CAPTURE(name);
    CHECK(spec.is_frozen == parameters.at(name).is_frozen);
    CHECK(spec.learning_rate_multiplier == parameters.at(name).learning_rate_multiplier);
  }
  CHECK(parameters.at("bn1.running_var").is_frozen);
  CHECK_FALSE(job.initialize.has_value());
}

TEST_CASE("the number of learners that is remembered belongs to the frozen layers") {
  const auto key = [](const std::string& training) { return throughput_key(parse(normalized(training))); };
  CHECK(key("freeze: \"conv1\"") == key("freeze: \"conv1\" seed: 3"));
  CHECK(key("freeze: \"conv1\"") != key(""));
  CHECK(key("freeze: \"conv1\"") != key("freeze: \"conv2\""));
}

TEST_CASE("a parameter that is fresh and frozen is warned of") {
  std::string text = initializing("from: \"x\" fresh: \"conv1\"");
  text.replace(text.find("max_epochs: 10"), 14, "freeze: \"conv1\"");
  CHECK(parse(text).warnings ==
        std::vector<std::string>{"'conv1.weight' is both fresh (initialize.fresh) and frozen (training.freeze): it "
                                 "stays at its initial values"});
}

}  // namespace arbalest::jobs
