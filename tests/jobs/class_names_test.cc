// Names of classes: those of the job, those beside the data, and wrong ones.
#include "train/data/class_names.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/job/job_changes.h"
#include "engine/base/error.h"
#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

using Names = std::vector<std::string>;
namespace fs = std::filesystem;

const Names kDigits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};

std::string with_data(std::string_view data) { return changed("data { digits {} }", data); }

DataOptions data_of(std::string_view data) { return parse(with_data(data)).data; }

// Returns the first line of the error for a job with such data.
std::string said_of(std::string_view data) {
  const std::string text = refusal(with_data(data));
  return text.substr(0, text.find('\n'));
}

// The error of looking for the names beside the data.
std::string failure_of(const DataOptions& data, const fs::path& root) {
  try {
    class_names(data, root.string());
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    return error.what();
  }
  FAIL("the names were accepted");
  return "";
}

}  // namespace

TEST_CASE("the resolved job names the classes of datasets that are known") {
  const JobOptions digits = parse(with_data("data { digits {} }"));
  CHECK(digits.data.class_names == kDigits);
  CHECK(parse(digits.resolved_text).data.class_names == kDigits);
  CHECK(data_of("data { mnist {} }").class_names == kDigits);
  CHECK(data_of("data { fashion_mnist {} }").class_names.at(9) == "Ankle boot");
  CHECK(data_of("data { fashion_mnist {} }").class_names.size() == 10);
  CHECK(data_of("data { cifar10 {} }").class_names.empty());
}

TEST_CASE("a job names the classes of its own data") {
  const std::string npy = "npy { directory: \"own\" classes: 2 height: 28 width: 28 channels: 1 }";
  const JobOptions job = parse(with_data("data { " + npy + " class_names: \"cat\" class_names: \"dog\" }"));
  CHECK(job.data.class_names == Names{"cat", "dog"});
  CHECK(parse(job.resolved_text).data.class_names == job.data.class_names);
  CHECK(class_names(job.data, "nowhere") == job.data.class_names);
  CHECK(class_names(data_of("data { " + npy + " }"), "nowhere").empty());
}

TEST_CASE("names that repeat, are missing or are too many are refused with their place") {
  const std::string npy = "data { npy { directory: \"own\" classes: 2 height: 28 width: 28 channels: 1 } ";
  CHECK(said_of(npy + "class_names: [\"cat\", \"cat\"] }") ==
        "job.txtpb:3:98: error: 'cat' is the name of class 0, too; give each class a name of its own");
  CHECK_THAT(said_of(npy + "class_names: [\"a\", \"b\", \"c\"] }"),
             ContainsSubstring("error: class_names has 3 names for 2 classes; give one name for each class"));
  CHECK_THAT(said_of(npy + "class_names: \"a\" }"), ContainsSubstring("error: class_names has 1 name for 2 classes"));
  CHECK_THAT(said_of(npy + "class_names: [\"a\", \"\"] }"), ContainsSubstring("the name of class 1 is empty"));
  CHECK_THAT(said_of(npy + "class_names: [\"a\", \"b\\nc\"] }"), ContainsSubstring("control character"));
  CHECK_THAT(refusal("model { zoo { matrix_factorization {} } } learning_rate { base: 0.1 } data { ratings { "
                     "directory: \"own\" sizes: 5 sizes: 6 } class_names: \"a\" }"),
             ContainsSubstring("ratings have no classes"));
}

TEST_CASE("the names beside the data are found") {
  const tests::TemporaryDirectory root;
  fs::create_directories(root / "cifar-10");
  const DataOptions cifar = data_of("data { cifar10 {} }");
  CHECK(class_names(cifar, root.path().string()).empty());
  const fs::path file = root / "cifar-10/batches.meta.txt";
  tests::write_text(file, "a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");  // the published file ends with an empty line
  CHECK(class_names(cifar, root.path().string()) == Names{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"});
  CHECK(class_names(data_of("data { cifar10 {} class_names: [\"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", "
                            "\"8\", \"nine\"] }"),
                    root.path().string())
            .back() == "nine");
  fs::create_directories(root / "shards");
  const DataOptions shards =
      data_of("data { tfrecord { directory: \"shards\" classes: 2 decoding { height: 28 width: 28 channels: 1 } } }");
  CHECK(class_names(shards, root.path().string()).empty());
  tests::write_text(root / "shards/classes.txt", "cat\ndog\n");
  CHECK(class_names(shards, root.path().string()) == Names{"cat", "dog"});
}

TEST_CASE("images have the names of their folders, in the order of the classes' numbers") {
  const tests::TemporaryDirectory root;
  for (const char* folder : {"own/train/zebra", "own/train/ape", "own/train/.cache"}) {
    fs::create_directories(root / folder);
  }
  const std::string decoding = " decoding { height: 28 width: 28 channels: 1 } } }";
  const DataOptions tree = data_of("data { images { directory: \"own\" classes: 2" + decoding);
  CHECK(class_names(tree, root.path().string()) == Names{"ape", "zebra"});
  tests::write_text(root / "own/list.txt", "x/zebra/1.png\nx/ape/2.png\ny/zebra/3.png\n");
  const DataOptions list = data_of("data { images { directory: \"own\" train: \"list.txt\" classes: 2" + decoding);
  CHECK(class_names(list, root.path().string()) == Names{"ape", "zebra"});
  fs::create_directories(root / "own/train/line\nbreak");
  const DataOptions three = data_of("data { images { directory: \"own\" classes: 3" + decoding);
  CHECK(class_names(three, root.path().string()) == Names{"ape", "line?break", "zebra"});
}

TEST_CASE("wrong names beside the data are refused, and the error names the file") {
  const tests::TemporaryDirectory root;
  fs::create_directories(root / "cifar-10");
  const DataOptions cifar = data_of("data { cifar10 {} }");
  const fs::path file = root / "cifar-10/batches.meta.txt";
  tests::write_text(file, "a\nb\n");
  CHECK_THAT(failure_of(cifar, root.path()), ContainsSubstring(file.string() + ": has 2 names for 10 classes") &&
                                                 ContainsSubstring("name the classes in the job (data.class_names)"));
  tests::write_text(file, "a\nb\nc\nd\ne\nf\ng\nh\ni\na\n");
  CHECK_THAT(failure_of(cifar, root.path()), ContainsSubstring("'a' is the name of class 0, too"));
  tests::write_text(file, "a\nb\nc\nd\ne\nf\ng\nh\ni\n\xff\n");
  CHECK_THAT(failure_of(cifar, root.path()), ContainsSubstring("is not UTF-8"));
}

TEST_CASE("a run may be resumed with other names of its classes, or after a version that had none") {
  const JobOptions named =
      parse(with_data("data { cifar10 {} class_names: [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", "
                      "\"g\", \"h\", \"i\", \"j\"] }"));
  const JobOptions without = parse(with_data("data { cifar10 {} }"));
  CHECK_NOTHROW(check_same_job(without.resolved_text, {}, named, {}));
  CHECK_NOTHROW(check_same_job(named.resolved_text, {}, without, {}));
  CHECK_THROWS(check_same_job(parse(with_data("data { cifar100 {} }")).resolved_text, {}, without, {}));
}

}  // namespace arbalest::jobs
