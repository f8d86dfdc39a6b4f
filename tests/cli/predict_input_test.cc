// The inputs of `arbalest predict`: several at once, partly bad ones, and options that do not fit.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cli/trained_run.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"

namespace arbalest::tests {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// Makes folders in folders, until the path is longer than a system call takes: the last ones cannot be listed by name.
void make_too_deep(const fs::path& begin) {
  const std::string name(200, 'x');
  int folder = open(begin.c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 25; ++i) {
    REQUIRE(folder >= 0);
    REQUIRE(mkdirat(folder, name.c_str(), 0700) == 0);
    const int next = openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY);
    close(folder);
    folder = next;
  }
  close(folder);
}

}  // namespace

TEST_CASE("predict: several inputs are predicted one after another") {
  write_text(trained() / "some.txt", "images/b.jpg\n");
  const Completed result =
      trained().predict({"images/b.jpg", "images/more", "some.txt", "images/a.png", "--format", "text", "--top", "1"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].starts_with("images/b.jpg: "));
  CHECK(lines[1].starts_with("images/more/c.PNG: "));
  CHECK(lines[2] == lines[0]);
  CHECK(lines[3].starts_with("images/a.png: "));

  write_text(trained() / "one.npy", npy("|u1", "1, 28, 28", std::string(28 * 28, 'x')));
  for (const char* alone : {"one.npy", "-"}) {
    const Completed refused = trained().predict({"images/a.png", alone});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring("must be the only input"));
  }
}

TEST_CASE("predict: of several inputs, one that cannot be read is a line with an error") {
  fs::create_symlink("nowhere.png", trained() / "dangling.png");
  REQUIRE(mkfifo((trained() / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("/proc/self/mem", trained() / "unreadable");  // its first bytes are never there
  const std::vector<std::string> inputs = {"images/a.png", "nowhere.png", "nowhere.npy", "nowhere/list",
                                           "dangling.png", "fifo",        "unreadable",  "images/b.jpg"};
  const Completed result = trained().predict(inputs);
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("6 of 8 examples could not be predicted; the first: nowhere.png: "));
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const json row = json::parse(lines[i]);
    CHECK(row["file"] == inputs[i]);
    CHECK(row.contains(inputs[i].starts_with("images/") ? "top" : "error"));
  }
  std::vector<std::string> skipping = inputs;
  skipping.emplace_back("--skip-errors");
  const Completed skipped = trained().predict(skipping);
  CHECK(skipped.exit_code == 0);
  CHECK(skipped.out == result.out);

  for (std::size_t i = 1; i + 1 < inputs.size(); ++i) {
    CAPTURE(inputs[i]);
    const Completed alone = trained().predict({inputs[i], "--skip-errors"});
    CHECK(alone.exit_code == 4);
    CHECK(alone.out.empty());
    CHECK_THAT(alone.err, ContainsSubstring(inputs[i]) && !ContainsSubstring("did you mean '" + inputs[i]));
  }
  for (const char* made : {"dangling.png", "fifo", "unreadable"}) fs::remove(trained() / made);
}

TEST_CASE("predict: a path with a NUL is never read up to it, and a list may begin with a byte order mark") {
  const std::string beyond_the_start(600, '\n');  // a file with a NUL in its first bytes is no list
  write_text(trained() / "nul.txt", beyond_the_start + "images/a.png" + '\0' + ".evil\nimages/b.jpg\n");
  const Completed listed = trained().predict({"nul.txt"});
  CHECK(listed.exit_code == 4);
  CHECK(trained().shell("$predict - < nul.txt").out == listed.out);
  const std::vector<std::string> lines = lines_of(listed.out);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(json::parse(lines[0])["error"].get<std::string>(), ContainsSubstring("holds a NUL"));
  CHECK(json::parse(lines[1]).contains("top"));

  write_text(trained() / "marked.txt", "\xEF\xBB\xBFimages/b.jpg\r\nimages/a.png\n");
  const Completed marked = trained().predict({"marked.txt"});
  CHECK(marked.exit_code == 0);
  CHECK(trained().shell("$predict - < marked.txt").out == marked.out);
  CHECK(lines_of(marked.out).size() == 2);
}

TEST_CASE("predict: the output cannot be one of the inputs, which would be lost") {
  write_text(trained() / "listed.txt", "images/a.png\n");
  write_text(trained() / "rows.NPY", npy("|u1", "1, 28, 28", std::string(28 * 28, 'x')));
  const auto size = fs::file_size(trained() / "images/a.png");
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& input) {
    const Completed result = trained().predict(arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("is the input '" + input + "', which would be lost"));
  };
  refused({"images/a.png", "--output", "images/a.png"}, "images/a.png");
  refused({"images", "--output", "images/a.png"}, "images/a.png");
  refused({"listed.txt", "--output", "listed.txt"}, "listed.txt");
  refused({"listed.txt", "--output", "images/../images/a.png"}, "images/a.png");
  refused({"rows.NPY", "--output", "rows.NPY"}, "rows.NPY");
  CHECK(trained().shell("echo images/a.png | $predict - --output images/a.png").exit_code == 2);
  CHECK(fs::file_size(trained() / "images/a.png") == size);
  CHECK(trained().predict({"rows.NPY"}).exit_code == 0);
}

TEST_CASE("predict: links to folders in a folder are left out with a warning, and a listed folder is an error") {
  fs::create_directories(trained() / "linking");
  fs::create_directory_symlink(trained() / "images", trained() / "linking/images");
  const Completed none = trained().predict({"linking"});
  CHECK(none.exit_code == 4);
  CHECK_THAT(none.err, ContainsSubstring("name the folders to which its links lead"));
  fs::copy_file(trained() / "images/a.png", trained() / "linking/a.png");
  const Completed one = trained().predict({"linking"});
  CHECK(one.exit_code == 0);
  CHECK(lines_of(one.out).size() == 1);
  CHECK_THAT(one.err, ContainsSubstring("skipped 1 link to folders"));
  const Completed listed = trained().shell("echo images | $predict -");
  CHECK_THAT(listed.out, ContainsSubstring("is a folder; name it as an input"));
}

TEST_CASE("predict: a folder in a folder that cannot be listed is a line with an error") {
  fs::create_directories(trained() / "deep");
  fs::copy_file(trained() / "images/a.png", trained() / "deep/a.png");
  make_too_deep(trained() / "deep");
  const Completed result = trained().predict({"deep", "--top", "1"});
  CHECK(result.exit_code == 4);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[0]).contains("top"));
  const json bad = json::parse(lines[1]);
  CHECK(bad["file"].get<std::string>().starts_with("deep/xxxx"));
  CHECK_THAT(bad["error"].get<std::string>(), ContainsSubstring("File name too long"));
  const Completed skipped = trained().predict({"deep", "--top", "1", "--skip-errors"});
  CHECK(skipped.exit_code == 0);
  CHECK(skipped.out == result.out);
  CHECK(Subprocess({"/bin/rm", "-r", "deep"}, {}, trained().program().directory()).wait().exit_code == 0);
}

TEST_CASE("predict: empty lines are passed over on standard input as in a list") {
  const Completed piped = trained().shell("printf '\\nimages/a.png\\n\\r\\n\\n' | $predict - --format text");
  CHECK(piped.exit_code == 0);
  CHECK(lines_of(piped.out).size() == 1);
  CHECK(piped.err.empty());
}

TEST_CASE("predict: an array of another shape or type is refused in the words of the model") {
  write_text(trained() / "wide.npy", npy("|u1", "1, 28, 27", std::string(28 * 27, 'x')));
  write_text(trained() / "floats.npy", npy("<f4", "1, 28, 28", std::string(28 * 28 * 4, '\0')));
  const Completed wide = trained().predict({"wide.npy"});
  CHECK(wide.exit_code == 4);
  CHECK_THAT(wide.err,
             ContainsSubstring("the shape (1, 28, 27), but the model 'logistic-digits' reads (n, 1, 28, 28)"));
  const Completed floats = trained().predict({"floats.npy"});
  CHECK(floats.exit_code == 4);
  CHECK_THAT(floats.err, ContainsSubstring("the model 'logistic-digits' reads images of unsigned bytes"));
  for (const Completed& refused : {wide, floats}) CHECK_THAT(refused.err, !ContainsSubstring("data."));
}

TEST_CASE("predict: options that do not fit are refused with what there is") {
  const Completed form = trained().predict({"images", "--format", "xml"});
  CHECK(form.exit_code == 2);
  CHECK_THAT(form.err, ContainsSubstring("xml") && ContainsSubstring("jsonl") && ContainsSubstring("csv"));
  CHECK(trained().predict({"images/a.png", "--format", "CSV"}).out.starts_with("file,label_1"));
  const std::vector<std::vector<std::string>> extras = {{"--top", "3"}, {"--format", "csv"}, {"--skip-errors"}};
  for (std::vector<std::string> arguments : extras) {
    arguments.emplace_back("--latency");
    const Completed refused = trained().predict(arguments);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring("--latency prints no predictions; leave out --top, --format"));
  }
}

}  // namespace arbalest::tests
