// arbalest data convert and arbalest data verify.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"
#include "tests/support/image_writer.h"
#include "tests/support/npy_writer.h"
#include "tests/support/ratings_writer.h"
#include "tests/support/small_datasets.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

// Writes two dark and three light images for training, and one of each for testing.
void write_photos(const fs::path& folder) {
  int number = 0;
  for (const char* name :
       {"train/dark", "train/dark", "train/light", "train/light", "train/light", "test/dark", "test/light"}) {
    fs::create_directories(folder / name);
    const auto shade = static_cast<std::uint8_t>(fs::path(name).filename() == "dark" ? number : 250 - number);
    write_text(folder / name / (std::to_string(number) + ".png"), png(plain(10 + number, 12, {shade, shade, shade})));
    ++number;
  }
}

std::string job(const std::string& data) {
  return "model { zoo { logistic_regression {} } } data { " + data +
         " } training { batch_size: 2 max_epochs: 4 } learning_rate { base: 0.05 } learners { per_device { fixed: 1 } "
         "}";
}

constexpr const char* kDecoding = "classes: 2 decoding { height: 8 width: 8 resize: 9 }";

}  // namespace

TEST_CASE("data convert: the shards train the same model as the folder") {
  const Program program;
  write_photos(program / "photos");
  const Completed converted = program.run({"data", "convert", "photos", "records", "--images-per-shard", "2"});
  INFO(converted.err);
  REQUIRE(converted.exit_code == 0);
  CHECK(converted.out == "records: 5 training and 2 test images, classes: 2 (dark, light)\n");
  for (const char* file : {"train-00000-of-00003", "train-00002-of-00003", "test-00000-of-00001"}) {
    CHECK(fs::exists(program / ("records/" + std::string(file))));
  }
  CHECK(read_text(program / "records/classes.txt") == "dark\nlight\n");
  CHECK_FALSE(fs::exists(program / "records.partial"));
  write_text(program / "folder.txtpb", job("images { directory: \"photos\" " + std::string(kDecoding) + "}"));
  write_text(program / "shards.txtpb", job("tfrecord { directory: \"records\" " + std::string(kDecoding) + "}"));
  for (const char* name : {"folder", "shards"}) {
    const Completed trained =
        program.run({"train", name + std::string(".txtpb"), "--data-root", ".", "--output", name});
    INFO(trained.err);
    CHECK(trained.exit_code == 0);
  }
  // Compares the files without their beginning, which has the name in the metadata.
  const auto weights = [&](const std::string& run) {
    const std::string file = read_text(program / (run + "/model.safetensors"));
    return file.substr(file.size() - 2 * 193 * 4);
  };
  CHECK(weights("folder") == weights("shards"));
}

TEST_CASE("data convert: writes shards of a validation set if it is named") {
  const Program program;
  write_folders(program / "photos");
  write_folder(program / "photos/val", 18, 100);
  const Completed converted = program.run({"data", "convert", "photos", "records", "--validation", "val"});
  INFO(converted.err);
  REQUIRE(converted.exit_code == 0);
  CHECK(converted.out ==
        "records: 60 training, 18 validation and 60 test images, classes: 3 (class0, class1, class2)\n");
  CHECK(std::filesystem::exists(program / "records/validation-00000-of-00001"));
  std::filesystem::remove_all(program / "photos/val/class1");
  const Completed missing = program.run({"data", "convert", "photos", "others", "--validation", "val"});
  CHECK(missing.exit_code == 4);
  CHECK_THAT(missing.err, ContainsSubstring("there is no image of class 'class1'"));
  CHECK_FALSE(std::filesystem::exists(program / "others"));
}

TEST_CASE("data convert: overwrites nothing, and leaves no incomplete output") {
  const Program program;
  write_photos(program / "photos");
  fs::create_directory(program / "records");
  const Completed there = program.run({"data", "convert", "photos", "records"});
  CHECK(there.exit_code == 2);
  CHECK_THAT(there.err, ContainsSubstring("records: is there already"));
  fs::create_directory(program / "others.partial");
  write_text(program / "others.partial/file", "somebody's");
  write_text(program / "photos/test/dark/5.png", "no image");
  const Completed damaged = program.run({"data", "convert", "photos", "others"});
  CHECK(damaged.exit_code == 4);
  CHECK_THAT(damaged.err, ContainsSubstring("photos/test/dark/5.png: is neither a JPEG, a PNG nor a WebP image"));
  CHECK_FALSE(fs::exists(program / "others"));
  CHECK(program.run({"data", "convert", "nowhere", "others"}).exit_code == 4);
  CHECK(read_text(program / "others.partial/file") == "somebody's");
  const auto others = [](const fs::directory_entry& entry) {
    return entry.path().filename().string().starts_with("others");
  };
  CHECK(std::count_if(fs::directory_iterator(program.directory()), {}, others) == 1);
  fs::remove(program / "photos/test/dark/5.png");
  write_text(program / "photos/test/dark/6.png", png(plain(5, 5, {0, 0, 0})));
  CHECK(program.run({"data", "convert", "photos", "others/"}).exit_code == 0);
  CHECK(fs::exists(program / "others/classes.txt"));
}

TEST_CASE("data convert: the error for an image that cannot be decoded names it, even if its header is valid") {
  const Program program;
  write_photos(program / "photos");
  const std::string image = read_text(program / "photos/train/light/3.png");
  write_text(program / "photos/train/light/3.png", image.substr(0, image.size() - 5));
  write_text(program / "photos/test/dark/5.png", "");
  const Completed damaged = program.run({"data", "convert", "photos", "records"});
  CHECK(damaged.exit_code == 4);
  CHECK_THAT(damaged.err, ContainsSubstring("2 of 7 images cannot be read") && ContainsSubstring("--no-verify") &&
                              ContainsSubstring("photos/train/light/3.png: is no valid PNG image: it is truncated") &&
                              ContainsSubstring("photos/test/dark/5.png: is empty"));
  CHECK(std::distance(fs::directory_iterator(program.directory()), {}) == 1);  // no output was created
  // With --no-verify only headers are read, so the truncated image is stored.
  write_text(program / "photos/test/dark/5.png", image);
  CHECK(program.run({"data", "convert", "photos", "records"}).exit_code == 4);
  CHECK(program.run({"data", "convert", "photos", "records", "--no-verify"}).exit_code == 0);
}

TEST_CASE("data convert: leaves no files if it is stopped while decoding or writing") {
  const Program program;
  write_photos(program / "photos");
  std::string list = "train/dark/0.png\n";
  for (int i = 0; i < 300'000; ++i) list += "train/light/3.png\n";
  write_text(program / "photos/train.txt", list);
  std::vector<std::string> arguments{"data", "convert", "photos", "records", "--train", "train.txt"};
  SECTION("while it decodes") {}
  SECTION("while it writes") { arguments.emplace_back("--no-verify"); }
  Subprocess converting = program.start(arguments);
  while (converting.is_running() && !converting.catches(SIGINT)) std::this_thread::yield();
  const auto is_writing = [&] { return std::distance(fs::directory_iterator(program.directory()), {}) > 1; };
  if (arguments.back() == "--no-verify") {
    while (converting.is_running() && !is_writing()) std::this_thread::yield();
  }
  converting.send(SIGINT);
  const Completed stopped = converting.wait();
  CHECK(stopped.exit_code == 130);
  CHECK_THAT(stopped.err, ContainsSubstring("stopped; 'records' has not been made"));
  CHECK_FALSE(is_writing());
}

TEST_CASE("data convert: a folder that cannot be created is a usage error") {
  const Program program;
  write_photos(program / "photos");
  for (const char* output : {"none/records", "/proc/records"}) {
    const Completed refused = program.run({"data", "convert", "photos", output});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring(std::string(output) + ": cannot be made: "));
  }
}

TEST_CASE("data verify: names the first unreadable examples, or all of them if requested") {
  const Program program;
  write_photos(program / "photos");
  for (int i = 0; i < 25; ++i) write_text(program / ("photos/train/dark/bad" + std::to_string(i) + ".png"), "no image");
  write_text(program / "job.txtpb", job("images { directory: \"photos\" " + std::string(kDecoding) + "}"));
  const auto named = [](const std::string& text) {
    int count = 0;
    for (std::size_t at = text.find("/bad"); at != std::string::npos; at = text.find("/bad", at + 1)) ++count;
    return count;
  };
  const Completed first = program.run({"data", "verify", "job.txtpb", "--data-root", "."});
  CHECK(first.exit_code == 4);
  CHECK(named(first.err) == 20);
  CHECK_THAT(first.err, ContainsSubstring("... and 5 more of photos train; --all names them all"));
  const Completed all = program.run({"data", "verify", "job.txtpb", "--data-root", ".", "--all"});
  CHECK(all.exit_code == 4);
  CHECK(named(all.err) == 25);
  CHECK_THAT(all.err, !ContainsSubstring("more of"));
}

TEST_CASE("data verify: the classes must have the names that the run has recorded") {
  const Program program;
  write_photos(program / "photos");
  write_text(program / "job.txtpb", job("images { directory: \"photos\" " + std::string(kDecoding) + "}"));
  REQUIRE(program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run"}).exit_code == 0);
  CHECK(program.run({"data", "verify", "run/job.txtpb", "--data-root", "."}).exit_code == 0);
  for (const char* split : {"train", "test"}) {
    fs::rename(program / ("photos/" + std::string(split) + "/dark"), program / ("photos/" + std::string(split) + "/x"));
  }
  const Completed renamed = program.run({"data", "verify", "run/job.txtpb", "--data-root", "."});
  CHECK(renamed.exit_code == 4);
  CHECK_THAT(renamed.err,
             ContainsSubstring("class 0 is 'light' in the data and 'dark' in the run's model.safetensors"));
  CHECK(program.run({"data", "verify", "job.txtpb", "--data-root", "."}).exit_code == 0);  // no run, nothing recorded
}

TEST_CASE("data verify: CIFAR-100 with a wrong list of names is an error, and with few images a warning") {
  const Program program;
  const std::string image(3072, '\7');
  std::string names;
  std::string records;
  for (int c = 0; c < 100; ++c) {
    names += "name" + std::to_string(c) + "\n";
    records += '\0' + std::string(1, static_cast<char>(c)) + image;  // coarse and fine label
  }
  fs::create_directories(program / "cifar-100");
  write_text(program / "cifar-100/train.bin", records);
  write_text(program / "cifar-100/test.bin", records);
  write_text(program / "cifar-100/fine_label_names.txt", names);
  write_text(program / "job.txtpb", job("cifar100 {}"));
  const auto verify = [&program] { return program.run({"data", "verify", "job.txtpb", "--data-root", "."}); };
  const Completed few = verify();
  CHECK(few.exit_code == 0);
  CHECK_THAT(few.err, ContainsSubstring("has 100 examples, but the published set has 50,000") &&
                          ContainsSubstring("has 100 examples, but the published set has 10,000"));
  write_text(program / "cifar-100/fine_label_names.txt", names.substr(names.find('\n') + 1));
  const Completed short_list = verify();
  CHECK(short_list.exit_code == 4);
  CHECK_THAT(short_list.err, ContainsSubstring("fine_label_names.txt: has 99 names for 100 classes"));
  write_text(program / "cifar-100/fine_label_names.txt", "name1\n" + names.substr(names.find('\n') + 1));
  const Completed repeated = verify();
  CHECK(repeated.exit_code == 4);
  CHECK_THAT(repeated.err, ContainsSubstring("fine_label_names.txt: "));
}

TEST_CASE("data verify: names every unreadable example") {
  const Program program;
  write_photos(program / "photos");
  write_text(program / "job.txtpb", job("images { directory: \"photos\" " + std::string(kDecoding) + "}"));
  const std::vector<std::string> arguments = {"data", "verify", "job.txtpb", "--data-root", "."};
  const Completed sound = program.run(arguments);
  INFO(sound.err);
  CHECK(sound.exit_code == 0);
  CHECK(sound.out ==
        "photos train: 5 examples, 2 classes of 2 to 3\nphotos test: 2 examples, 2 classes of 1 to 1\n"
        "class  folder  name\n0      dark    dark\n1      light   light\n");
  const std::string image = read_text(program / "photos/train/light/3.png");
  write_text(program / "photos/train/light/3.png", image.substr(0, image.size() - 5));
  write_text(program / "photos/test/dark/5.png", "");
  const Completed damaged = program.run(arguments);
  CHECK(damaged.exit_code == 4);
  CHECK_THAT(damaged.err, ContainsSubstring("photos/train/light/3.png: is no valid PNG image: it is truncated") &&
                              ContainsSubstring("photos/test/dark/5.png: is empty") &&
                              ContainsSubstring("photos test: 1 class is without an example"));
  CHECK_THAT(damaged.out, ContainsSubstring("photos train: 5 examples, 2 classes of 2 to 2; 1 cannot be read"));
  write_text(program / "photos/test/dark/5.png", "\x1f\x8b\x08 as gzip files begin");
  CHECK_THAT(program.run(arguments).err,
             ContainsSubstring("photos/test/dark/5.png: is neither a JPEG, a PNG nor a WebP image"));
}

TEST_CASE("data verify: the errors for damaged shards name the records") {
  const Program program;
  write_photos(program / "photos");
  REQUIRE(program.run({"data", "convert", "photos", "records"}).exit_code == 0);
  write_text(program / "job.txtpb", job("tfrecord { directory: \"records\" " + std::string(kDecoding) + "}"));
  const fs::path shard = program / "records/train-00000-of-00001";
  const std::string whole = read_text(shard);
  std::string damaged = whole;
  damaged[whole.size() - 10] = static_cast<char>(~damaged[whole.size() - 10]);
  for (const auto& [content, message] : {std::pair(damaged, "the checksum of its data is wrong"),
                                         std::pair(whole.substr(0, whole.size() - 1), "truncated within record 4")}) {
    write_text(shard, content);
    for (const char* command : {"verify", "train"}) {
      const std::vector<std::string> arguments =
          command == std::string("train")
              ? std::vector<std::string>{"train", "job.txtpb", "--data-root", ".", "--dry-run"}
              : std::vector<std::string>{"data", "verify", "job.txtpb", "--data-root", "."};
      const Completed result = program.run(arguments);
      CHECK(result.exit_code == 4);
      CHECK_THAT(result.err, ContainsSubstring("train-00000-of-00001") && ContainsSubstring("record 4") &&
                                 ContainsSubstring(message));
    }
  }
}

TEST_CASE("data verify: names all damaged records of a shard, and a job may skip them") {
  const Program program;
  write_photos(program / "photos");
  REQUIRE(program.run({"data", "convert", "photos", "records"}).exit_code == 0);
  write_text(program / "job.txtpb", job("tfrecord { directory: \"records\" " + std::string(kDecoding) + "}"));
  const fs::path shard = program / "records/train-00000-of-00001";
  std::string damaged = read_text(shard);
  damaged[30] = static_cast<char>(~damaged[30]);                                    // in the first record
  damaged[damaged.size() - 10] = static_cast<char>(~damaged[damaged.size() - 10]);  // in the last
  write_text(shard, damaged);
  const Completed verified = program.run({"data", "verify", "job.txtpb", "--data-root", "."});
  CHECK(verified.exit_code == 4);
  CHECK_THAT(verified.err, ContainsSubstring("record 0 (byte 0): the checksum") && ContainsSubstring("record 4 (byte"));
  CHECK_THAT(verified.out, ContainsSubstring("5 examples") && ContainsSubstring("2 cannot be read"));
  const Completed trained =
      program.run({"train", "job.txtpb", "--data-root", ".", "--dry-run", "--set",
                   "data.tfrecord.decoding.on_unreadable=SKIP", "--set", "data.tfrecord.decoding.max_skipped=0.5"});
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
}

TEST_CASE("data verify: NumPy arrays of bytes can be trained on") {
  const Program program;
  fs::create_directory(program / "own");
  for (const char* split : {"train", "test"}) {
    std::string pixels;
    std::string labels;
    for (int i = 0; i < 6; ++i) {
      pixels += std::string(4 * 4, static_cast<char>(i % 2 == 0 ? 10 + i : 200 + i));
      labels += static_cast<char>(i % 2);
    }
    write_text(program / ("own/" + std::string(split) + "_images.npy"), npy("|u1", "6, 4, 4", pixels));
    write_text(program / ("own/" + std::string(split) + "_labels.npy"), npy("|i1", "6,", labels));
  }
  write_text(program / "job.txtpb", job("npy { directory: \"own\" classes: 2 channels: 1 height: 4 width: 4 }"));
  CHECK(program.run({"data", "verify", "job.txtpb", "--data-root", "."}).out ==
        "own train: 6 examples, 2 classes of 3 to 3\nown test: 6 examples, 2 classes of 3 to 3\n");
  const Completed trained = program.run({"train", "job.txtpb", "--data-root", ".", "--output", "run"});
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  CHECK_THAT(read_text(program / "run/summary.json"), ContainsSubstring("\"test_accuracy\": 1.0"));
  write_text(program / "own/test_labels.npy", npy("|O", "6,", "pickle"));
  CHECK(program.run({"train", "job.txtpb", "--data-root", "."}).exit_code == 4);
}

TEST_CASE("data verify: floating-point arrays train, evaluate exactly, and are refused with the record") {
  const Program program;
  fs::create_directory(program / "own");
  std::vector<double> features;
  for (const std::string split : {"train", "test"}) {
    const int examples = split == "train" ? 40 : 20;
    features.clear();
    std::string labels;
    for (int i = 0; i < examples; ++i) {
      const double side = i % 2 == 0 ? -1000.0 : 1000.0;
      for (int k = 0; k < 5; ++k) features.push_back(side * (1.0 + 0.1 * ((i + k) % 7)));
      labels += static_cast<char>(i % 2);
    }
    const std::string count = std::to_string(examples);
    write_text(program / ("own/" + split + "_images.npy"), npy("<f8", count + ", 5", bytes_of(features)));
    write_text(program / ("own/" + split + "_labels.npy"), npy("|i1", count + ",", labels));
  }
  write_text(program / "job.txtpb",
             job("npy { directory: \"./own\" classes: 2 features: 5 pixels: FLOAT32 } normalization { stddev: 1000 }"));
  // "./own" is beside the job file, whatever the data root is.
  const Completed verified = program.run({"data", "verify", "job.txtpb"});
  CHECK_THAT(verified.out, ContainsSubstring("own train: 40 examples, 2 classes of 20 to 20\n") &&
                               ContainsSubstring("own test: 20 examples, 2 classes of 10 to 10\n"));
  const Completed trained = program.run({"train", "job.txtpb", "--output", "run"});
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  const auto summary = nlohmann::json::parse(read_text(program / "run/summary.json"));
  CHECK(summary["test_accuracy"] == 1.0);
  const Completed evaluated = program.run({"evaluate", "run", "--json"});
  CHECK(nlohmann::json::parse(evaluated.out)["test_loss"] == summary["test_loss"]);

  const auto per_class = nlohmann::json::parse(program.run({"evaluate", "run", "--json", "--per-class"}).out);
  CHECK(per_class["test_accuracy"] == 1.0);
  CHECK(per_class["confusion_matrix"].dump() == "[[10,0],[0,10]]");
  for (const char* excluded : {"height=1", "width=1", "channels=5"}) {
    const Completed refused = program.run({"validate", "job.txtpb", "--set", std::string("data.npy.") + excluded});
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring("is for images, and features for rows of numbers; remove one of them"));
  }
  CHECK(program.run({"validate", "job.txtpb", "--set", "data.npy.features=0"}).exit_code == 2);

  features.back() = std::nan("");
  write_text(program / "own/test_images.npy", npy("<f8", "20, 5", bytes_of(features)));
  for (const Completed& refused : {program.run({"train", "job.txtpb"}), program.run({"data", "verify", "job.txtpb"})}) {
    CHECK(refused.exit_code == 4);
    CHECK_THAT(refused.err, ContainsSubstring("test_images.npy: record 19: element 4: pixel nan is no finite number"));
  }
}

TEST_CASE("data verify: ratings train, evaluate exactly, and are refused with the record") {
  const Program program;
  write_ratings(program / "ratings");
  const std::vector<std::string> job{Program::config("matrix-factorization-ratings"), "--data-root", "."};
  const auto run = [&](std::vector<std::string> command, const std::vector<std::string>& more = {}) {
    command.insert(command.end(), job.begin(), job.end());
    command.insert(command.end(), more.begin(), more.end());
    return program.run(command);
  };
  CHECK(run({"data", "verify"}).out == "ratings train: 12,000 examples\nratings test: 3,000 examples\n");
  const Completed trained = run({"train"}, {"--set", "training.max_epochs=1", "--output", "run"});
  INFO(trained.err);
  CHECK(trained.exit_code == 0);
  CHECK_THAT(trained.out, ContainsSubstring("test RMSE") && !ContainsSubstring("accuracy"));
  const auto summary = nlohmann::json::parse(read_text(program / "run/summary.json"));
  CHECK(summary["test_rmse"].get<double>() < 1.0);
  CHECK_FALSE(summary.contains("test_accuracy"));
  CHECK_THAT(read_text(program / "run/metrics.jsonl"), ContainsSubstring("\"test_rmse\":"));
  const Completed evaluated = program.run({"evaluate", "run", "--data-root", ".", "--json"});
  CHECK(nlohmann::json::parse(evaluated.out)["test_rmse"] == summary["test_rmse"]);
  CHECK_THAT(program.run({"evaluate", "run", "--data-root", "."}).out, Catch::Matchers::StartsWith("test_rmse "));
  const Completed per_class = program.run({"evaluate", "run", "--per-class"});
  CHECK(per_class.exit_code == 2);
  CHECK_THAT(per_class.err, ContainsSubstring("predicts numbers and has no classes"));

  std::string ids = read_text(program / "ratings/train_ids.npy");
  ids.back() = '\x7F';  // in the last item's id
  write_text(program / "ratings/train_ids.npy", ids);
  for (const Completed& refused : {run({"train"}), run({"data", "verify"})}) {
    CHECK(refused.exit_code == 4);
    CHECK_THAT(refused.err, ContainsSubstring("train_ids.npy: record 11999: column 1: id") &&
                                ContainsSubstring("is not in [0, 120)"));
  }
}

TEST_CASE("data: command-line errors refer to the group of commands") {
  const Program program;
  const auto said = [&](const std::vector<std::string>& arguments) {
    const Completed result = program.run(arguments);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(said({"data"}), ContainsSubstring("'arbalest data --help' shows what there is"));
  CHECK(said({"data", "verfy"}) ==
        "arbalest: error: unknown command 'verfy'; did you mean 'verify'? ('arbalest data --help' shows what there "
        "is)\n");
  CHECK_THAT(said({"data", "verify", "job.txtpb", "--dataroot", "."}),
             ContainsSubstring("unknown option '--dataroot'; did you mean '--data-root'?") &&
                 ContainsSubstring("'arbalest data verify --help'"));
  CHECK_THAT(said({"data", "convert", "a", "b", "c"}), ContainsSubstring("unexpected argument 'c'"));
  CHECK_THAT(said({"data", "convert", "a"}), ContainsSubstring("OUTPUT"));
}

}  // namespace arbalest::tests
