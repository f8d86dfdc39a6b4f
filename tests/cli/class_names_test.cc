// Number, folder and name of each class, from a folder of images to the table of a saved model.
#include <fmt/format.h>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

constexpr const char* kJob = R"(name: "own"
model { zoo { logistic_regression {} } }
data { images { directory: "own" classes: 3 decoding { height: 8 width: 8 } } }
training { batch_size: 4 max_epochs: 2 }
learning_rate { base: 0.05 }
learners { per_device { fixed: 1 } }
devices: "cpu:0"
)";

// Folders 1, 2 and 10, which are classes 0, 2 and 1, with four images each for training and two for testing.
class NumberedFolders {
 public:
  NumberedFolders() {
    write_text(program_ / "own.txtpb", kJob);
    for (const int folder : {1, 2, 10}) {
      for (int i = 0; i < 6; ++i) {
        const fs::path directory = program_ / fmt::format("data/own/{}/{}", i < 4 ? "train" : "test", folder);
        fs::create_directories(directory);
        const auto level = static_cast<std::uint8_t>(20 * folder + i);
        write_text(directory / fmt::format("{}.png", i), png(plain(8, 8, {level, level, level})));
      }
    }
  }

  Completed run(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return program_.run(arguments);
  }
  Completed train(const std::vector<std::string>& more = {}) const {
    return run({"train", "own.txtpb", "--data-root", "data", "--output", "run"}, more);
  }

  const Program& program() const { return program_; }

 private:
  Program program_;
};

const char* const kWarning = "class 2 is '2'";

}  // namespace

TEST_CASE("class names: folders that are numbers are shown with their numbers, and warned of") {
  const NumberedFolders own;
  const Completed trained = own.train();
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring(kWarning) && ContainsSubstring("pad their names with zeros"));
  CHECK_THAT(trained.err, ContainsSubstring("3, as number=folder: 0=1, 1=10, 2=2\n"));
  const std::string table = "class  folder  name\n0      1       1\n1      10      10\n2      2       2\n";
  const Completed verified = own.run({"data", "verify", "own.txtpb", "--data-root", "data"});
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, Catch::Matchers::EndsWith(table));
  CHECK_THAT(verified.err, ContainsSubstring(kWarning));
  const Completed inspected = own.run({"inspect", "own.txtpb", "--data-root", "data"});
  CHECK_THAT(inspected.out, Catch::Matchers::EndsWith("\nClasses:\n" + table));
  CHECK_THAT(inspected.err, ContainsSubstring(kWarning));
  const auto json = nlohmann::json::parse(own.run({"inspect", "own.txtpb", "--data-root", "data", "--json"}).out);
  CHECK(json["classes"][2].dump() == R"({"class":2,"folder":"2","name":"2"})");
  CHECK_THAT(own.run({"train", "own.txtpb", "--data-root", "data", "--dry-run"}).err, ContainsSubstring(kWarning));
  CHECK_THAT(own.run({"data", "convert", "data/own", "records"}).err, ContainsSubstring(kWarning));
  // Without the data there is no table.
  const Completed without = own.run({"inspect", "own.txtpb", "--data-root", "nowhere"});
  CHECK(without.exit_code == 0);
  CHECK_THAT(without.out, !ContainsSubstring("Classes:"));
}

TEST_CASE("class names: evaluate prints them with precision, recall and F1") {
  const NumberedFolders own;
  const Completed trained = own.train({"--set", R"(data.class_names=["one", "ten", "two"])"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("3, as number=folder (name): 0=1 (one), 1=10 (ten), 2=2 (two)\n"));
  CHECK_THAT(trained.err, ContainsSubstring("class 2 is '2' and is called 'two'"));
  const Completed evaluated = own.run({"evaluate", "run", "--per-class"});
  REQUIRE(evaluated.exit_code == 0);
  CHECK_THAT(evaluated.out, ContainsSubstring("class          name  examples  precision") &&
                                ContainsSubstring("1              ten          2") &&
                                ContainsSubstring("label  name  0  1  2\n"));
  const auto json = nlohmann::json::parse(own.run({"evaluate", "run", "--per-class", "--json"}).out);
  CHECK(json["per_class"][2]["name"] == "two");
  CHECK(json["per_class"][2]["examples"] == 2);
  CHECK(json["macro_mean"].size() == 3);
}

TEST_CASE("class names: the folders' names in another order are refused at the job's line") {
  const NumberedFolders own;
  std::string job = kJob;
  job.insert(job.find(" }\ntraining"), R"( class_names: ["1", "2", "10"])");
  write_text(own.program() / "own.txtpb", job);
  for (const std::vector<std::string>& more : {std::vector<std::string>(), {"--dry-run"}}) {
    const Completed refused = own.run({"train", "own.txtpb", "--data-root", "data"}, more);
    CHECK(refused.exit_code == 3);
    CHECK_THAT(refused.err, ContainsSubstring("own.txtpb:3:93: error: class_names are in another order") &&
                                ContainsSubstring("class_names are 1, 2, 10; by number the classes are 1, 10, 2;"));
  }
  CHECK(own.run({"inspect", "own.txtpb", "--data-root", "data"}).exit_code == 3);
  const Completed verified = own.run({"data", "verify", "own.txtpb", "--data-root", "data"});
  CHECK(verified.exit_code == 4);
  CHECK_THAT(verified.err, ContainsSubstring("own.txtpb:3:93: error: class_names are in another order"));
}

TEST_CASE("class names: a model is not evaluated on data that number its classes in another order") {
  const NumberedFolders own;
  REQUIRE(own.train().exit_code == 0);
  for (const char* split : {"train", "test"}) {
    for (const char* folder : {"1", "2"}) {
      const fs::path directory = own.program() / fmt::format("data/own/{}", split);
      fs::rename(directory / folder, directory / (std::string("0") + folder));
    }
  }
  const Completed refused = own.run({"evaluate", "run"});
  CHECK(refused.exit_code == 4);
  CHECK_THAT(refused.err, ContainsSubstring("classes are 01, 02, 10 in the data, and 1, 10, 2 in the model"));
  // The same order under other names is only told.
  for (const char* split : {"train", "test"}) {
    const fs::path directory = own.program() / fmt::format("data/own/{}", split);
    fs::rename(directory / "01", directory / "a");
    fs::rename(directory / "10", directory / "b");
    fs::rename(directory / "02", directory / "c");
  }
  const Completed told = own.run({"evaluate", "run"});
  CHECK(told.exit_code == 0);
  CHECK_THAT(told.err, ContainsSubstring("class 0 is 'a' in the folders of") && ContainsSubstring("and '1' in 'run"));
}

TEST_CASE("class names: a test set that lacks a class is told") {
  const NumberedFolders own;
  fs::remove_all(own.program() / "data/own/test/10");
  const Completed trained = own.train();
  CHECK(trained.exit_code == 0);
  CHECK_THAT(trained.err, ContainsSubstring("own/test: has no image of these classes of the training set, so scores "
                                            "leave them out: 10"));
}

TEST_CASE("numbers: a leading zero is warned of in a job file, and refused on the command line") {
  const NumberedFolders own;
  std::string job = kJob;
  job.replace(job.find("batch_size: 4"), 13, "batch_size: 010");
  write_text(own.program() / "octal.txtpb", job);
  const std::string warning =
      "octal.txtpb:4:24: batch_size: 010 is octal 8, because of its leading zero; write 10 or 8";
  CHECK_THAT(own.run({"validate", "octal.txtpb"}).err, ContainsSubstring(warning));
  CHECK_THAT(own.run({"inspect", "octal.txtpb", "--expand"}).err, ContainsSubstring(warning));
  CHECK_THAT(own.run({"train", "octal.txtpb", "--data-root", "data", "--output", "run"}).err,
             ContainsSubstring(warning));
  CHECK_THAT(read_text(own.program() / "run/job.txtpb"), ContainsSubstring("batch_size: 8\n"));
  const std::vector<std::pair<std::vector<std::string>, const char*>> refused = {
      {{"validate", "own.txtpb", "--set", "training.batch_size=064"}, "write 64 or 52"},
      {{"bench", "own.txtpb", "--seeds", "1", "--vary", "training.batch_size=16,064"},
       "--vary training.batch_size=064"},
      {{"bench", "own.txtpb", "--seeds", "1..010"}, "010 has a leading zero"},
      {{"data", "convert", "data/own", "records", "--images-per-shard", "0100"}, "0100 has a leading zero"},
      {{"predict", "run", "--top", "01", "data/own/test/1/4.png"}, "01 has a leading zero"},
      {{"inspect", "own.txtpb", "--links", "1GB/s,5us", "--devices-assumed", "010"}, "write 10"}};
  for (const auto& [arguments, said] : refused) {
    const Completed result = own.run(arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring(said));
  }
}

}  // namespace arbalest::tests
