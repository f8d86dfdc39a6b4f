// A run that version 5a143d63 trained on gray images from colored PNG files with chunks about gamma, from 16-bit PNG
// files and from JPEG files, one of them with an orientation, is used as that version used it. tests/cli/older_pictures
// has the images, the job and the run after two epochs; the numbers here are what that version printed.
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr double kMargin = 2e-6;  // processors round differently; other pixels change the third digit
constexpr const char* kNote =
    "whose rules for image files still apply to it: gray by libpng's gamma, EXIF orientation ignored, JPEG "
    "decoded at reduced size";

fs::path older() { return fs::path(source_directory()) / "tests/cli/older_pictures"; }

// The images, the job and the run in the program's directory.
void copy_run(const Program& program) {
  fs::copy(older(), program.directory(), fs::copy_options::recursive);
  fs::permissions(program.directory(), fs::perms::owner_all, fs::perm_options::add);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("older pictures: a saved model is evaluated by the rules that it was trained with, and says so once") {
  const Program program;
  copy_run(program);
  const std::vector<std::string> command = {"evaluate", "run", "--data-root", ".", "--json"};
  const Completed done = program.run(command);
  CAPTURE(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(count(done.err, kNote) == 1);
  const json scores = json::parse(done.out);
  CHECK(scores["test_accuracy"] == 0.7);
  CHECK(scores["test_loss"].get<double>() == Approx(0.6208476543426513).margin(kMargin));
}

TEST_CASE("older pictures: predictions are those of the older version") {
  const Program program;
  copy_run(program);
  const Completed done = program.run({"predict", "run", "pictures/test", "--top", "1", "--format", "jsonl"});
  CAPTURE(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(count(done.err, kNote) == 1);
  struct Expected {
    std::string label;
    double probability;
  };
  const std::vector<Expected> expected = {
      {"blue", 0.5824374},  {"red", 0.56730825}, {"blue", 0.68039167}, {"blue", 0.5530906}, {"blue", 0.6982486},
      {"blue", 0.58073217}, {"blue", 0.5235139}, {"red", 0.5110028},   {"red", 0.52203196}, {"red", 0.57021356}};
  std::size_t line = 0;
  for (std::size_t at = 0; at < done.out.size(); ++line) {
    const std::size_t end = done.out.find('\n', at);
    const json prediction = json::parse(done.out.substr(at, end - at));
    at = end + 1;
    CAPTURE(prediction["file"].get<std::string>());
    REQUIRE(line < expected.size());
    CHECK(prediction["top"][0]["label"] == expected[line].label);
    CHECK(prediction["top"][0]["probability"].get<double>() == Approx(expected[line].probability).margin(kMargin));
  }
  CHECK(line == expected.size());
}

TEST_CASE("older pictures: a run goes on by its rules, also when it is stopped and resumed again") {
  const Program program;
  copy_run(program);
  const auto resume = [&](const std::string& epochs) {
    return program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run", "--resume", "auto", "--set",
                        "training.max_epochs=" + epochs});
  };
  for (const char* epochs : {"3", "4"}) {  // the second process finds a checkpoint of this version
    const Completed done = resume(epochs);
    CAPTURE(done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(count(done.err, kNote) == 1);
  }
  const json summary = json::parse(read_text(program / "run/summary.json"));
  CHECK(summary["test_accuracy"] == 0.7);
  CHECK(summary["test_loss"].get<double>() == Approx(0.5290975093841552).margin(kMargin));
  // The model now records the rules, which its users go on keeping.
  const std::string model = read_text(program / "run/model.safetensors");
  CHECK_THAT(model, ContainsSubstring(R"("luma":"libpng")") && ContainsSubstring(R"("orientation":"ignored")") &&
                        ContainsSubstring(R"("jpeg":"reduced")"));
  const Completed evaluated = program.run({"evaluate", "run", "--data-root", ".", "--json"});
  CHECK(json::parse(evaluated.out)["test_loss"].get<double>() == Approx(0.5290975093841552).margin(kMargin));
  CHECK(count(evaluated.err, kNote) == 1);
}

TEST_CASE("older pictures: a new run has today's rules, and its model records them") {
  const Program program;
  copy_run(program);
  const Completed done = program.run({"train", "job.txtpb", "--data-root", ".", "--output", "new"});
  CAPTURE(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(count(done.err, kNote) == 0);
  const std::string model = read_text(program / "new/model.safetensors");
  CHECK_THAT(model, ContainsSubstring(R"("luma":"BT.601")") && ContainsSubstring(R"("orientation":"applied")") &&
                        ContainsSubstring(R"("jpeg":"whole")"));
  const json summary = json::parse(read_text(program / "new/summary.json"));
  CHECK(std::abs(summary["test_loss"].get<double>() - 0.5290975093841552) > 100 * kMargin);  // other pixels
  const Completed changed =
      program.run({"train", "job.txtpb", "--data-root", ".", "--output", "new", "--resume", "auto", "--set",
                   "data.images.orientation=IGNORE", "--set", "training.max_epochs=6"});
  CHECK(changed.exit_code == 5);
  CHECK_THAT(changed.err, ContainsSubstring("data.images.orientation: APPLY in the checkpoint, IGNORE in the job"));
}

}  // namespace arbalest::tests
