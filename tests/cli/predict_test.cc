// `arbalest predict`, as a user runs it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/cli/trained_run.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"
#include "tests/support/npy_writer.h"

namespace arbalest::tests {

namespace fs = std::filesystem;
using nlohmann::json;

TEST_CASE("predict: an image gets the names of its most probable classes") {
  const Completed result = trained().predict({"images/a.png", "--top", "3"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const json row = json::parse(result.out);
  CHECK(row["file"] == "images/a.png");
  REQUIRE(row["top"].size() == 3);
  CHECK(row["top"][0]["label"] == std::to_string(row["top"][0]["output"].get<int>()));
  CHECK(row["top"][0]["probability"] >= row["top"][1]["probability"]);
  CHECK(row["top"][1]["probability"] >= row["top"][2]["probability"]);

  const json all = json::parse(trained().predict({"images/a.png", "--top", "99"}).out);
  REQUIRE(all["top"].size() == 10);  // there are no more classes
  double sum = 0.0;
  for (const json& choice : all["top"]) sum += choice["probability"].get<double>();
  CHECK(sum == Approx(1.0).epsilon(1e-5));
}

TEST_CASE("predict: a folder, a list, a single file and standard input say the same of an image") {
  const Completed folder = trained().predict({"images", "--format", "text"});
  INFO(folder.err);
  REQUIRE(folder.exit_code == 0);
  const std::vector<std::string> lines = lines_of(folder.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("images/a.png: "));
  CHECK(lines[1].starts_with("images/b.jpg: "));
  CHECK(lines[2].starts_with("images/more/c.PNG: "));
  write_text(trained() / "images/list.txt", "more/c.PNG\r\na.png\n\n");  // relative to the folder of the list
  const Completed list = trained().predict({"images/list.txt", "--format", "text"});
  CHECK(lines_of(list.out) == std::vector<std::string>{lines[2], lines[0]});
  CHECK(trained().predict({"images/b.jpg", "--format", "text"}).out == lines[1] + "\n");
  const Completed piped = trained().shell("printf 'images/b.jpg\\nimages/a.png\\n' | $predict - --format text");
  CHECK(lines_of(piped.out) == std::vector<std::string>{lines[1], lines[0]});
  CHECK(piped.exit_code == 0);
  fs::remove(trained() / "images/list.txt");
}

TEST_CASE("predict: each line of standard input is answered before the next one comes") {
  // Without a flush after each line, the shell would wait for the first answer without end.
  const Completed result = trained().shell(
      "mkfifo in out\n"
      "$predict - --format text --top 1 < in > out &\n"
      "exec 3> in 4< out\n"
      "for image in images/a.png missing.png images/b.jpg; do echo $image >&3; read -r answer <&4; echo \"$answer\"; "
      "done\n"
      "exec 3>&-\n"
      "wait $!; echo \"exit code $?\"; rm in out\n");
  const std::vector<std::string> lines = lines_of(result.out);
  INFO(result.out << result.err);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].starts_with("images/a.png: "));
  CHECK(lines[1].starts_with("missing.png: error: cannot be opened"));
  CHECK(lines[2].starts_with("images/b.jpg: "));
  CHECK(lines[3] == "exit code 4");
}

TEST_CASE("predict: standard input that is closed or has no lines ends the work") {
  const Completed closed = trained().shell("$predict - <&-; echo \"exit code $?\"");
  CHECK(closed.out == "exit code 0\n");
  const Completed endless = trained().shell("$predict - < /dev/zero; echo \"exit code $?\"");
  CHECK(endless.out == "exit code 4\n");
  CHECK_THAT(endless.err, ContainsSubstring("a line of more than 65536 bytes"));
}

TEST_CASE("predict: a signal ends the wait for a line, and no file of an output is left") {
  const Completed result = trained().shell(
      "mkfifo in\n"
      "$predict - --output stopped.jsonl < in &\n"
      "exec 3> in\n"
      "echo images/a.png >&3\n"
      // The handler is there once the program has its output, a file of another name.
      "until ls stopped.jsonl.partial-* > /dev/null 2>&1; do sleep 0.05; done\n"
      "kill -TERM $!; wait $!; echo \"exit code $?\"; exec 3>&-; rm in; ls stopped*\n");
  CHECK(result.out == "exit code 143\n");
  CHECK_THAT(result.err, ContainsSubstring("stopped after ") && ContainsSubstring("'stopped.jsonl' is not written"));
}

TEST_CASE("predict: an unreadable image is a line with an error, and exit code 4 unless errors are skipped") {
  write_text(trained() / "mixed.txt", "images/a.png\nbroken.png\nnowhere.png\nimages\nimages/b.jpg\n");
  const Completed result = trained().predict({"mixed.txt"});
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("error: 3 of 5 examples could not be predicted; the first: broken.png: "));
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 5);
  CHECK(json::parse(lines[0]).contains("top"));
  CHECK_THAT(json::parse(lines[1])["error"].get<std::string>(), ContainsSubstring("PNG"));
  CHECK_THAT(json::parse(lines[2])["error"].get<std::string>(), ContainsSubstring("cannot be opened"));
  CHECK(json::parse(lines[3]).contains("error"));
  CHECK_FALSE(json::parse(lines[1]).contains("top"));
  CHECK(json::parse(lines[4]).contains("top"));

  const Completed skipped = trained().predict({"mixed.txt", "--skip-errors"});
  CHECK(skipped.exit_code == 0);
  CHECK(skipped.out == result.out);
  CHECK_THAT(skipped.err, ContainsSubstring("warning: 3 of 5"));
}

TEST_CASE("predict: images of every broken kind are lines with an error, and the good ones beside them are predicted") {
  const fs::path folder = trained() / "hostile";
  fs::create_directories(folder / "7.png");  // a folder of that name
  const std::string good = jpeg(gradient(30, 40));
  write_text(folder / "0.jpg", good);
  write_text(folder / "1.jpg", "");
  write_text(folder / "2.jpg", "no image at all\n");
  write_text(folder / "3.jpg", good.substr(0, good.size() / 2));
  write_text(folder / "4.jpg", jpeg(gradient(30, 40, 4)));            // CMYK, which can be read
  write_text(folder / "5.jpg", jpeg_of_sides(good, 65'500, 65'500));  // more pixels than memory
  write_text(folder / "6.png", png(gradient(28, 28, 1)).replace(60, 8, 8, '\xAA'));
  fs::create_symlink("nowhere.png", folder / "8.png");
  write_text(folder / "9.png", png(gradient(28, 28, 3), 16));  // 16 bits a sample, which can be read
  write_text(folder / "notes.md", "no image, and not named like one");
  const Completed result = trained().predict({"hostile", "--top", "1"});
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("skipped 1 file without an image extension (1 .md)"));
  CHECK_THAT(result.err, ContainsSubstring("6 of 9 examples could not be predicted"));
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 9);
  for (const std::string& line : lines) {
    const json row = json::parse(line);
    const std::string name = fs::path(row["file"].get<std::string>()).filename().string();
    CAPTURE(name);
    CHECK(row.contains("top") == (name == "0.jpg" || name == "4.jpg" || name == "9.png"));
    CHECK(row.contains("error") == !row.contains("top"));
  }
}

TEST_CASE("predict: CSV has a header and a row for each example, whatever is in the name of a file") {
  fs::copy_file(trained() / "images/a.png", trained() / "one, \"two\".png");
  write_text(trained() / "names.txt", "one, \"two\".png\nbroken.png\n");
  const Completed result = trained().predict({"names.txt", "--format", "csv", "--top", "2"});
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "file,label_1,probability_1,label_2,probability_2,error");
  CHECK(lines[1].starts_with("\"one, \"\"two\"\".png\","));
  CHECK(lines[1].ends_with(","));  // no error
  CHECK(lines[2].starts_with("broken.png,,,,,"));
}

TEST_CASE("predict: an array is numbered, and must have the shape and type that the model reads") {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 3 * 28 * 28; ++i) pixels.push_back(static_cast<std::uint8_t>(i * 7));
  write_text(trained() / "three.npy", npy("|u1", "3, 28, 28", bytes_of(pixels)));
  const Completed result = trained().predict({"three.npy"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(json::parse(lines[static_cast<std::size_t>(i)])["index"] == i);

  write_text(trained() / "shape.npy", npy("|u1", "3, 28, 27", bytes_of(pixels)));
  write_text(trained() / "type.npy", npy("<f4", "3, 28, 28", std::string(3 * 28 * 28 * 4, '\0')));
  write_text(trained() / "short.npy", npy("|u1", "3, 28, 28", "short"));
  for (const char* wrong : {"shape.npy", "type.npy", "short.npy"}) {
    const Completed refused = trained().predict({wrong});
    CHECK(refused.exit_code == 4);
    CHECK_THAT(refused.err, ContainsSubstring(wrong));
    CHECK(refused.out.empty());
  }
}

TEST_CASE("predict: the file of the output appears whole, or not at all") {
  write_text(trained() / "mixed.txt", "images/a.png\nbroken.png\nnowhere.png\nimages\nimages/b.jpg\n");
  CHECK(trained().predict({"images", "--output", "labels.jsonl"}).out.empty());
  CHECK(read_text(trained() / "labels.jsonl") == trained().predict({"images"}).out);
  CHECK(trained().predict({"mixed.txt", "--output", "labels.jsonl"}).exit_code == 4);  // its lines are whole
  CHECK(lines_of(read_text(trained() / "labels.jsonl")).size() == 5);
  const std::string before = read_text(trained() / "labels.jsonl");
  const Completed missing = trained().predict({"no-such-folder", "--output", "labels.jsonl"});
  CHECK(missing.exit_code == 4);
  CHECK(read_text(trained() / "labels.jsonl") == before);
  const Completed unwritable = trained().predict({"images", "--output", "no-such-folder/labels.jsonl"});
  CHECK(unwritable.exit_code == 2);
  CHECK_THAT(unwritable.err, ContainsSubstring("no-such-folder/labels.jsonl") && ContainsSubstring("--output"));
  const Completed folder = trained().predict({"images", "--output", "images"});
  CHECK(folder.exit_code == 2);
  CHECK(trained().predict({"images", "--output", "/dev/null"}).exit_code == 2);  // and is not replaced by a file
  CHECK(fs::is_character_file("/dev/null"));
  for (const auto& entry : fs::directory_iterator(trained().program().directory())) {
    CHECK(entry.path().string().find(".partial") == std::string::npos);
  }
}

TEST_CASE("predict: a reader that ends early ends the work quietly, and a full disk is an error") {
  std::vector<std::uint8_t> pixels(std::size_t{20'000} * 28 * 28, 3);  // its lines are more than a pipe holds
  write_text(trained() / "many.npy", npy("|u1", "20000, 28, 28", bytes_of(pixels)));
  const Completed piped = trained().shell("($predict many.npy; echo $? > code) | head -n 1");
  CHECK(lines_of(piped.out).size() == 1);
  CHECK(piped.err.empty());
  CHECK(read_text(trained() / "code") == "0\n");
  // An input with an error before the reader ends keeps its code.
  const Completed broken =
      trained().shell("(for i in $(seq 2000); do echo broken.png; done | $predict -; echo $? > code) | head -n 1");
  CHECK(lines_of(broken.out).size() == 1);
  CHECK(read_text(trained() / "code") == "4\n");
  const Completed full = trained().shell("$predict many.npy > /dev/full");
  CHECK(full.exit_code == 6);
  CHECK_THAT(full.err, ContainsSubstring("cannot write to standard output"));
}

TEST_CASE("predict: a run without a model, and a damaged model, are refused with the reason") {
  const Program program;
  fs::create_directories(program / "empty");
  const Completed none = program.run({"predict", "empty", "a.png"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, ContainsSubstring("is not the directory of a run: it has no job.txtpb"));
  fs::copy(trained() / "run", program / "run");
  fs::remove(program / "run/model.safetensors");
  const Completed missing = program.run({"predict", "run", "a.png"});
  CHECK(missing.exit_code == 5);
  CHECK_THAT(missing.err, ContainsSubstring("the run 'run' has no model") && ContainsSubstring("deleted or moved"));
  std::string model = read_text(trained() / "run/model.safetensors");
  model.back() = static_cast<char>(model.back() ^ 1);
  write_text(program / "run/model.safetensors", model);
  const Completed changed = program.run({"predict", "run", "a.png"});
  CHECK(changed.exit_code == 5);
  CHECK_THAT(changed.err, ContainsSubstring("it was changed after its run had saved it"));
}

TEST_CASE("predict: inputs that are none are refused") {
  const Completed nothing = trained().predict({});
  CHECK(nothing.exit_code == 2);
  CHECK_THAT(nothing.err, ContainsSubstring("an input is missing"));
  const Completed missing = trained().predict({"images/a.pgn"});
  CHECK(missing.exit_code == 4);
  CHECK_THAT(missing.err, ContainsSubstring("did you mean 'images/a.png'?"));
  fs::create_directories(trained() / "hollow/.hidden");
  fs::copy_file(trained() / "images/a.png", trained() / "hollow/.hidden/a.png");
  const Completed hollow = trained().predict({"hollow"});
  CHECK(hollow.exit_code == 4);
  CHECK_THAT(hollow.err, ContainsSubstring("holds no image"));
  write_text(trained() / "blank.txt", "\n\n");
  CHECK_THAT(trained().predict({"blank.txt"}).err, ContainsSubstring("lists no image"));
  CHECK(trained().predict({"images", "--top", "0"}).exit_code == 2);
  CHECK(trained().predict({"images", "--format", "xml"}).exit_code == 2);
  CHECK(trained().predict({"images", "--latency"}).exit_code == 2);
  CHECK(trained().predict({"images", "--json"}).exit_code == 2);
}

TEST_CASE("predict: the best model and a checkpoint answer, too") {
  for (const char* which : {"best", "last"}) {
    const Completed result = trained().predict({"images/a.png", "--checkpoint", which});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK(json::parse(result.out)["top"].size() == 5);
  }
}

TEST_CASE("predict: --latency reports percentiles that ascend, and a throughput") {
  const Completed result = trained().predict({"--latency", "--json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const json report = json::parse(result.out);
  CHECK(report["single"][0]["threads"] == 1);
  for (const json& row : report["single"]) {
    CHECK(row["examples"] >= 16);
    CHECK(row["p50_ms"] > 0.0);
    CHECK(row["p50_ms"] <= row["p90_ms"]);
    CHECK(row["p90_ms"] <= row["p99_ms"]);
    CHECK(row["p99_ms"] <= row["most_ms"]);
  }
  CHECK(report["images_per_second"] > 0.0);
}

}  // namespace arbalest::tests
