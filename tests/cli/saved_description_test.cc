// A saved model and the job.txtpb of its run may say different things about the input.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/trained_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace fs = std::filesystem;

namespace {

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = read_text(file);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  write_text(file, text.replace(at, from.size(), to));
}

// predict, evaluate and export of "run".
std::vector<Completed> uses_of(const Program& program) {
  return {program.run({"predict", "run", "a.png"}), program.run({"evaluate", "run"}),
          program.run({"export", "run", "--output", "model.onnx"})};
}

}  // namespace

TEST_CASE("description: a job with another normalization or other names is told, and the model's own are used") {
  const Program program;
  fs::copy(trained() / "run", program / "run", fs::copy_options::recursive);
  fs::copy_file(trained() / "images/a.png", program / "a.png");
  const std::vector<Completed> before = uses_of(program);
  const std::string exported = read_text(program / "model.onnx");
  const std::string job = read_text(program / "run/job.txtpb");
  const std::size_t mean = job.find("    mean: ");
  REQUIRE(mean != std::string::npos);
  replace_in(program / "run/job.txtpb", job.substr(mean, job.find('\n', mean) - mean), "    mean: 0.75");
  replace_in(program / "run/job.txtpb", "class_names: \"3\"", "class_names: \"three\"");
  const std::vector<Completed> after = uses_of(program);
  for (std::size_t i = 0; i < after.size(); ++i) {
    CAPTURE(i, after[i].err);
    CHECK(before[i].exit_code == 0);
    CHECK(before[i].err.empty());
    CHECK(after[i].exit_code == 0);
    CHECK_THAT(after[i].err, ContainsSubstring("'run/model.safetensors' has another preparation or labels"));
    CHECK_THAT(after[i].err, ContainsSubstring("mean [") && ContainsSubstring("] and not [0.75], other class_names"));
    CHECK(after[i].out == before[i].out);
  }
  CHECK(read_text(program / "model.onnx") == exported);
}

TEST_CASE("description: a model of another shape or number of outputs is refused, and nothing is written") {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {R"("shape":"[1, 28, 28]")", R"("shape":"[1, 28, 27]")"}, {R"("outputs":"10")", R"("outputs":"11")"}};
  for (const auto& [from, to] : changes) {
    CAPTURE(to);
    const Program program;
    fs::copy(trained() / "run", program / "run", fs::copy_options::recursive);
    fs::copy_file(trained() / "images/a.png", program / "a.png");
    fs::remove(program / "run/summary.json");  // it has the hash of the model
    replace_in(program / "run/model.safetensors", from, to);
    if (from.find("outputs") != std::string::npos) {
      replace_in(program / "run/model.safetensors", "\"class_names\"", "\"Class_names\"");  // they would not be 11
    }
    for (const Completed& refused : uses_of(program)) {
      CHECK(refused.exit_code == 5);
      CHECK_THAT(refused.err, ContainsSubstring("does not match the run's job.txtpb: "));
    }
    CHECK_FALSE(fs::exists(program / "model.onnx"));
  }
}

}  // namespace arbalest::tests
