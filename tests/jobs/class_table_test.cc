// Which class has which number, folder and name, and names in another order than the classes.
#include "train/data/class_table.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "messages/class_order.h"
#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// sorted(map(str, range(12))), as Python 3.11 and so torchvision's ImageFolder.find_classes order them.
const Names kAsText = {"0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8", "9"};
constexpr std::string_view kCounted =
    R"("0" class_names: "1" class_names: "2" class_names: "3" class_names: "4" class_names: "5" class_names: "6"
  class_names: "7" class_names: "8" class_names: "9" class_names: "10" class_names: "11")";

std::string images(std::size_t classes, std::string_view more = "") {
  return fmt::format(
      "data {{ images {{ directory: \"own\" classes: {} decoding {{ height: 28 width: 28 channels: 1 }} }}{} }}",
      classes, more);
}

std::string shards(std::size_t classes, std::string_view more = "") {
  return fmt::format(
      "data {{ tfrecord {{ directory: \"own\" classes: {} decoding {{ height: 28 width: 28 channels: 1 }} }}{} }}",
      classes, more);
}

DataOptions data_of(const std::string& data, const std::vector<std::string>& settings = {}) {
  return parse(changed("data { digits {} }", data), settings).data;
}

void make_folders(const tests::TemporaryDirectory& root, const Names& names) {
  for (const std::string& name : names) fs::create_directories(root / ("own/train/" + name));
}

// The error about the order of names, which must be of kind `kind`.
std::string refusal_of(const DataOptions& data, const fs::path& root, engine::ErrorKind kind) {
  std::vector<std::string> warnings;
  try {
    read_class_table(data, root.string(), warnings);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL("the names were accepted");
  return "";
}

ModelDescription with_names(const Names& names) {
  ModelDescription description;
  description.outputs = std::ssize(names);
  description.class_names = names;
  return description;
}

}  // namespace

TEST_CASE("class names: orders are compared, and whole numbers by their value") {
  const auto other = [](const Names& a, const Names& b) { return is_other_order(a, b); };
  CHECK(other({"cat", "dog"}, {"dog", "cat"}));
  CHECK_FALSE(other({"cat", "dog"}, {"cat", "dog"}));
  CHECK_FALSE(other({"cat", "dog"}, {"cat", "hare"}));
  CHECK_FALSE(other({"cat", "dog"}, {"dog", "cat", "hare"}));
  CHECK(other({"0", "1", "2", "10"}, {"0", "1", "10", "2"}));
  CHECK(other({"00", "01", "02", "10"}, {"0", "1", "10", "2"}));
  CHECK_FALSE(other({"00", "01", "02", "10"}, {"0", "1", "2", "10"}));
  CHECK(are_uncounted_numbers(kAsText));
  CHECK_FALSE(are_uncounted_numbers(Names{"0", "1", "2", "10"}));
  CHECK_FALSE(are_uncounted_numbers(Names{"00", "01", "02", "10"}));
  CHECK_FALSE(are_uncounted_numbers(Names{"1", "10", "2b"}));
  CHECK_FALSE(are_uncounted_numbers(Names{}));
  CHECK(first_difference(Names{"00", "1", "a"}, Names{"0", "1", "b"}) == 2);
  CHECK(first_difference(Names{"00", "1"}, Names{"0", "1"}) == -1);
}

TEST_CASE("class names: folders that are numbers are numbered as text, and a warning says so") {
  const tests::TemporaryDirectory root;
  make_folders(root, kAsText);
  std::vector<std::string> warnings;
  const ClassTable table = read_class_table(data_of(images(12)), root.path().string(), warnings);
  CHECK(table.names == kAsText);
  CHECK(table.in_files == kAsText);
  CHECK(warnings == Names{"the folders of " + (root / "own/train").string() +
                          ": the names are whole numbers, but not in numerical order: class 4 is '2'; folders are "
                          "sorted as text, as torchvision's ImageFolder sorts them: for numerical order pad their "
                          "names with zeros ('02' before '10')"});
  CHECK(to_line(table) == "12, as number=folder: 0=0, 1=1, 2=10, 3=11, 4=2, 5=3, 6=4, 7=5, 8=6, 9=7, 10=8, 11=9");

  std::string named;
  for (int c = 0; c < 12; ++c) named += fmt::format(" class_names: \"class{}\"", c);
  warnings.clear();
  read_class_table(data_of(images(12, named)), root.path().string(), warnings);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(), ContainsSubstring("class 4 is '2' and is called 'class4'"));
}

TEST_CASE("class names: padded numbers and other names give no warning") {
  for (const Names& names :
       {Names{"00", "01", "02", "10"}, Names{"0", "1", "2", "9"}, Names{"class1", "class10", "x"}}) {
    const tests::TemporaryDirectory root;
    make_folders(root, names);
    std::vector<std::string> warnings;
    CHECK(read_class_table(data_of(images(names.size())), root.path().string(), warnings).names == names);
    CHECK(warnings.empty());
  }
}

TEST_CASE("class names: the folders' names in another order are refused at the job's line, with both orders") {
  const tests::TemporaryDirectory root;
  make_folders(root, kAsText);
  const std::string names = " class_names: " + std::string(kCounted);
  const std::string said = refusal_of(data_of(images(12, names)), root.path(), engine::ErrorKind::kInvalidJob);
  CHECK_THAT(said,
             Catch::Matchers::StartsWith("job.txtpb:3:94: error: class_names are in another order than the folders "
                                         "of " +
                                         (root / "own/train").string()));
  CHECK_THAT(said, ContainsSubstring("class_names are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11; by number the classes are "
                                     "0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9;") &&
                       ContainsSubstring("or leave class_names out"));
  const std::string option =
      "data.class_names=[\"1\", \"0\", \"10\", \"11\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", "
      "\"8\", \"9\"]";
  CHECK_THAT(refusal_of(data_of(images(12), {option}), root.path(), engine::ErrorKind::kUsage),
             Catch::Matchers::StartsWith("--set data.class_names="));
  // A job with fewer learners keeps the place.
  const JobOptions job = parse(changed("data { digits {} }", images(12, names)));
  CHECK_THAT(refusal_of(with_learners(job, 1, "why").data, root.path(), engine::ErrorKind::kInvalidJob),
             ContainsSubstring("job.txtpb:3:94"));
}

TEST_CASE("class names: a name that is another class's is warned of") {
  const tests::TemporaryDirectory root;
  make_folders(root, {"cat", "cow", "dog"});
  std::vector<std::string> warnings;
  read_class_table(data_of(images(3, " class_names: [\"cat\", \"dog\", \"Kuh\"]")), root.path().string(), warnings);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Catch::Matchers::StartsWith("class_names call class 1 'dog', which is the name of class 2 in "
                                                      "the folders of") &&
                              ContainsSubstring("in the order of the classes' numbers: cat, cow, dog"));
  read_class_table(data_of(images(3, " class_names: [\"Katze\", \"Kuh\", \"Hund\"]")), root.path().string(), warnings);
  CHECK(warnings.size() == 1);
}

TEST_CASE("class names: a list beside shards in another order is refused, and translations are not") {
  const tests::TemporaryDirectory root;
  fs::create_directories(root / "own");
  tests::write_text(root / "own/classes.txt", "cat\ndog\n");
  const auto names = [](std::string_view a, std::string_view b) {
    return shards(2, fmt::format(" class_names: \"{}\" class_names: \"{}\"", a, b));
  };
  CHECK_THAT(refusal_of(data_of(names("dog", "cat")), root.path(), engine::ErrorKind::kInvalidJob),
             ContainsSubstring("in another order than " + (root / "own/classes.txt").string()) &&
                 ContainsSubstring("by number the classes are cat, dog;"));
  std::vector<std::string> warnings;
  const ClassTable table = read_class_table(data_of(names("Katze", "Hund")), root.path().string(), warnings);
  CHECK(to_line(table) == "2, as number=in the list (name): 0=cat (Katze), 1=dog (Hund)");
  CHECK(to_text(table, 20) ==
        "class  in the list  name\n"
        "0      cat          Katze\n"
        "1      dog          Hund\n");
  // The job corrects a list that is wrong.
  tests::write_text(root / "own/classes.txt", "cat\n");
  CHECK(read_class_table(data_of(names("dog", "cat")), root.path().string(), warnings).names == Names{"dog", "cat"});
  tests::write_text(root / "own/classes.txt", "1\n10\n2\n");
  CHECK(warnings.empty());
  read_class_table(data_of(shards(3)), root.path().string(), warnings);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings.front(),
             ContainsSubstring("classes.txt: the names are whole numbers, but not in numerical order: class 2 is '2'"));
}

TEST_CASE("class names: the table is short for a thousand classes, and empty where names are the numbers") {
  ClassTable table{.names = {}, .in_files = {}, .are_folders = true};
  for (int c = 0; c < 1000; ++c) {
    table.in_files.push_back(fmt::format("n{:04}", c));
    table.names.push_back(fmt::format("name {}", c));
  }
  CHECK(to_line(table).size() < 400);
  CHECK_THAT(to_line(table), ContainsSubstring("1000, as number=folder (name): 0=n0000 (name 0), ") &&
                                 Catch::Matchers::EndsWith("11=n0011 (name 11) and 988 more"));
  CHECK(to_text(table, 2) ==
        "class  folder  name\n"
        "0      n0000   name 0\n"
        "1      n0001   name 1\n"
        "... and 998 more\n");
  std::vector<std::string> warnings;
  const ClassTable digits = read_class_table(data_of("data { digits {} }"), "nowhere", warnings);
  CHECK(digits.size() == 10);
  CHECK(to_line(digits).empty());
  CHECK(to_text(digits, 20).empty());
  CHECK_THAT(to_line(read_class_table(data_of("data { fashion_mnist {} }"), "nowhere", warnings)),
             ContainsSubstring("10, as number=name: 0=T-shirt/top, 1=Trouser"));
  CHECK(warnings.empty());
  CHECK(find_class_table(data_of(images(2)), "nowhere", warnings).size() == 0);
  CHECK_THROWS_AS(read_class_table(data_of(images(2)), "nowhere", warnings), engine::Error);
}

TEST_CASE("class names: a model that has learned another order is not evaluated") {
  const tests::TemporaryDirectory root;
  make_folders(root, kAsText);
  const auto warnings_of = [&](const std::string& data, const Names& learned) {
    std::vector<std::string> warnings;
    check_class_order(data_of(data), root.path().string(), with_names(learned), "model", warnings);
    return warnings;
  };
  const Names counted = {"00", "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11"};
  CHECK(warnings_of(images(12), kAsText).empty());
  CHECK(warnings_of(images(12), {}).empty());
  CHECK_THROWS_WITH(warnings_of(images(12), counted), ContainsSubstring("class 2 is '10' in the folders of") &&
                                                          ContainsSubstring("and '02' in 'model'") &&
                                                          ContainsSubstring("classes are 0, 1, 10, 11, 2, 3") &&
                                                          ContainsSubstring("9 in the data, and 00, 01, 02"));
  Names others = kAsText;
  others[3] = "eleven";
  REQUIRE(warnings_of(images(12), others).size() == 1);
  CHECK_THAT(warnings_of(images(12), others).front(),
             ContainsSubstring("class 3 is '11' in") && ContainsSubstring("if these are other classes"));
  // A run of an earlier version whose job had named the classes in another order is right but for the names.
  const std::string names = images(12, " class_names: " + std::string(kCounted));
  REQUIRE(warnings_of(names, counted).size() == 1);
  CHECK_THAT(warnings_of(names, counted).front(),
             ContainsSubstring("train again with class_names in the data's order"));
  CHECK(warnings_of(names, others).empty());  // the job may call them as it likes
}

}  // namespace arbalest::jobs
