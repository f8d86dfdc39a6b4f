// Matching a file of weights with a model: what is loaded, and the message about what does not fit.
#include "train/weights/initial_weights.h"

#include <algorithm>
#include <limits>
#include <map>

#include "dataflow/parameter_rules.h"
#include "saved_model/safetensors.h"
#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

using dataflow::NamedTensor;
using tests::TemporaryDirectory;

// An MLP with the layers fc1 (784 to 4) and fc2 (4 to 10).
constexpr const char* kJob = R"(name: "job"
model {
  layers { name: "flat" input: "image" flatten {} }
  layers { name: "fc1" input: "flat" dense { units: 4 } }
  layers { name: "fc2" input: "fc1" dense { units: 10 } }
  layers { name: "loss" input: ["fc2", "label"] softmax_cross_entropy {} }
}
data { digits {} }
learning_rate { base: 0.01 }
learners { per_device { fixed: 1 } }
)";

NamedTensor tensor(const std::string& name, const engine::Shape& shape, float value = 0.5F) {
  return {name, shape, std::vector<float>(static_cast<std::size_t>(shape.elements()), value)};
}

// All parameters of the model, with this prefix.
std::vector<NamedTensor> model(const std::string& prefix = "") {
  return {tensor(prefix + "fc1.weight", {4, 784}, 1.0F), tensor(prefix + "fc1.bias", {4}, 2.0F),
          tensor(prefix + "fc2.weight", {10, 4}, 3.0F), tensor(prefix + "fc2.bias", {10}, 4.0F)};
}

InitialWeights read(const std::vector<NamedTensor>& tensors, const std::string& options = "") {
  const TemporaryDirectory directory;
  const std::string path = (directory / "x.safetensors").string();
  write_safetensors(path, tensors, {});
  const JobOptions job = parse(std::string(kJob) + "initialize { from: \"" + path + "\" " + options + " }");
  InitialWeights weights = read_initial_weights(*job.initialize, *job.graph);
  CHECK(weights.path == path);
  return weights;
}

// The message without the file's directory.
std::string refusal_of(const std::vector<NamedTensor>& tensors, const std::string& options = "") {
  try {
    read(tensors, options);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    const std::string text = error.what();
    return text.substr(text.find("x.safetensors"));
  }
  return "accepted";
}

std::map<std::string, float> first_values(const InitialWeights& weights) {
  std::map<std::string, float> values;
  for (const NamedTensor& loaded : weights.tensors) values[loaded.name] = loaded.values.front();
  return values;
}

const std::map<std::string, float> kAll = {
    {"fc1.weight", 1.0F}, {"fc1.bias", 2.0F}, {"fc2.weight", 3.0F}, {"fc2.bias", 4.0F}};

}  // namespace

TEST_CASE("a file with exactly the model's parameters is loaded, in any order and type of counter") {
  std::vector<NamedTensor> tensors = model();
  std::ranges::reverse(tensors);
  tensors.push_back(tensor("bn1.num_batches_tracked", {}));
  const InitialWeights weights = read(tensors);
  CHECK(first_values(weights) == kAll);
  CHECK(weights.fresh.empty());
  CHECK(weights.ignored == 1);
}

TEST_CASE("fresh parameters may be missing or of another shape, and ignored tensors may be anything") {
  std::vector<NamedTensor> tensors = model();
  tensors[2] = tensor("fc2.weight", {1000, 4});
  tensors.pop_back();
  tensors.push_back(tensor("head.weight", {7}, std::numeric_limits<float>::quiet_NaN()));
  const InitialWeights weights = read(tensors, R"(fresh: "fc2" ignore: "head")");
  CHECK(first_values(weights) == std::map<std::string, float>{{"fc1.weight", 1.0F}, {"fc1.bias", 2.0F}});
  CHECK(weights.fresh == std::vector<std::string>{"fc2.weight", "fc2.bias"});
  CHECK(weights.ignored == 2);
  CHECK(weights.text() == "2 tensors of " + weights.path + ", fresh fc2.weight fc2.bias, 2 ignored");
}

TEST_CASE("the first rename that matches gives a tensor its name") {
  CHECK(first_values(read(model("module."), R"(rename { from: "module.*" to: "*" })")) == kAll);
  std::vector<NamedTensor> tensors = model();
  tensors[2].name = "head.fc2.weight";
  tensors[3].name = "head.b";
  CHECK(first_values(read(tensors, R"(rename { from: "head.b" to: "fc2.bias" } rename { from: "head.*" to: "*" })")) ==
        kAll);
}

TEST_CASE("all that does not fit is listed in one error") {
  std::vector<NamedTensor> tensors = model();
  tensors[0] = tensor("fc1.weight", {4, 1024});
  tensors[3] = tensor("head.bias", {10});
  tensors.push_back(tensor("head.weight", {10, 9}));
  CHECK(
      refusal_of(tensors, R"(ignore: "fc9")") ==
      "x.safetensors' does not fit the model:\n"
      "  missing: 'fc2.bias' [10]\n"
      "  shape: 'fc1.weight' is [4, 1024] in the file and [4, 784] in the model\n"
      "  unexpected: 'head.bias' [10]\n"
      "  unexpected: 'head.weight' [10, 9]\n"
      "  initialize.ignore \"fc9\" matches no tensor of the file\n"
      "add to initialize: fresh: \"fc2.bias\" fresh: \"fc1.weight\" to start with initial values; ignore: \"head\" to "
      "leave out what the model lacks; or rename { from: \"...\" to: \"...\" } where only names differ");
}

TEST_CASE("a tensor that was renamed to no parameter is told with both names") {
  CHECK_THAT(refusal_of(model(), R"(rename { from: "fc2.*" to: "bar.*" })"),
             ContainsSubstring("missing: 'fc2.weight' [10, 4]") &&
                 ContainsSubstring("unexpected: 'fc2.weight', renamed to 'bar.weight', [10, 4]"));
}

TEST_CASE("the advice about one tensor leaves the others of its layer alone") {
  std::vector<NamedTensor> tensors = model();
  tensors.push_back(tensor("fc2.scale", {3}));
  CHECK(refusal_of(tensors).ends_with("\nadd to initialize: ignore: \"fc2.scale\" to leave out what the model lacks"));
  CHECK(first_values(read(tensors, R"(ignore: "fc2.scale")")) == kAll);
}

TEST_CASE("tensors that are not needed may share a name, and a rename of them alone is unused") {
  std::vector<NamedTensor> tensors = model();
  tensors.push_back(tensor("old.weight", {3}));
  tensors.push_back(tensor("head.weight", {3}));
  CHECK(first_values(read(tensors, R"(fresh: "fc2" rename { from: "old.weight" to: "fc2.weight" } ignore: "head")")) ==
        std::map<std::string, float>{{"fc1.weight", 1.0F}, {"fc1.bias", 2.0F}});
  CHECK_THAT(refusal_of(tensors, R"(ignore: "old" ignore: "head" rename { from: "head.*" to: "fc3.*" })"),
             ContainsSubstring("initialize.rename \"head.*\" matches no tensor of the file"));
}

TEST_CASE("a prefix is recognized") {
  CHECK(refusal_of(model("_orig_mod.")).ends_with("\nadd to initialize: rename { from: \"_orig_mod.*\" to: \"*\" }"));
  std::vector<NamedTensor> tensors = model();
  for (NamedTensor& one : tensors) one.name = one.name.substr(1);  // "c1.weight"
  CHECK(refusal_of(tensors).ends_with("\nadd to initialize: rename { from: \"*\" to: \"f*\" }"));
}

TEST_CASE("tensors that cannot be used are named") {
  std::vector<NamedTensor> tensors = model();
  tensors[1].values[2] = std::numeric_limits<float>::infinity();
  CHECK(refusal_of(tensors) == "x.safetensors' does not fit the model:\n  'fc1.bias' has values that are not finite");
  CHECK(refusal_of(model(), R"(rename { from: "fc2.weight" to: "fc1.weight" })") ==
        "x.safetensors' does not fit the model:\n"
        "  missing: 'fc2.weight' [10, 4]\n"
        "  'fc1.weight' and 'fc2.weight' both become 'fc1.weight'\n"
        "add to initialize: fresh: \"fc2.weight\" to start with initial values");
  CHECK(refusal_of(model(), R"(rename { from: "head.*" to: "*" })") ==
        "x.safetensors' does not fit the model:\n  initialize.rename \"head.*\" matches no tensor of the file");
}

TEST_CASE("a file that is not there, and a directory without a model, are named") {
  const TemporaryDirectory directory;
  const auto message = [&](const std::string& path) -> std::string {
    const JobOptions job = parse(std::string(kJob) + "initialize { from: \"" + path + "\" }");
    try {
      read_initial_weights(*job.initialize, *job.graph);
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
      return error.what();
    }
    return "accepted";
  };
  const std::string run = directory.path().string();
  CHECK_THAT(message("/no/such.safetensors"), ContainsSubstring("error: '/no/such.safetensors' does not exist"));
  CHECK_THAT(message(run), ContainsSubstring("error: the directory '" + run + "' has no model.safetensors"));
  tests::write_text(directory / "weights.safetensors", "");
  const std::string mistyped = message(run + "/weigths.safetensors");
  CHECK_THAT(mistyped, ContainsSubstring("' does not exist; did you mean '" + run + "/weights.safetensors'?"));
  CHECK_THAT(mistyped, ContainsSubstring("job.txtpb:"));
  const std::string parent = directory.path().parent_path().string();
  const std::string name = directory.path().filename().string();
  CHECK_THAT(message(parent + "/" + name + "x/model.safetensors"), ContainsSubstring("; did you mean '" + run + "'?"));
  CHECK_THAT(message(run + "/quite/another/file"), ContainsSubstring("; there is no '" + run + "/quite'"));
  write_safetensors(directory / "model.safetensors", model(), {});
  CHECK(message(run) == "accepted");
}

}  // namespace arbalest::jobs
