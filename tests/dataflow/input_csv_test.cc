#include "dataflow/input/formats/csv.h"

#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/example.h"
#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using Labels = std::vector<std::int32_t>;
using Names = std::vector<std::string>;

const std::string kFlowers = "petal,species,sepal\n1.5,rose,-2\n0,aster,1e2\n+3,tulip,.25\n4,rose,5\n";

// `test`: the file that is read; "": the training set itself.
std::unique_ptr<dataflow::FloatImages> load(const std::string& training, const std::string& test = "",
                                            std::int64_t classes = 3, int processes = 1) {
  const tests::TemporaryDirectory directory;
  tests::write_text(directory / "train.csv", training);
  tests::write_text(directory / "test.csv", test);
  return dataflow::load_csv({.name = "own train",
                             .examples = directory / (test.empty() ? "train.csv" : "test.csv"),
                             .labels = {},
                             .expected = dataflow::image_input({2, 1, 1}, classes),
                             .normalization = {},
                             .budget = engine::host::MemoryBudget(processes),
                             .training = directory / "train.csv"},
                            "species");
}

// The message without the folder: "train.csv:3: ...".
std::string failure(const std::string& training, const std::string& test = "", std::int64_t classes = 3) {
  try {
    load(training, test, classes);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    const std::string text = error.what();
    const std::size_t file = text.find(text.find("test.csv") == std::string::npos ? "train.csv" : "test.csv");
    REQUIRE(file != std::string::npos);
    return text.substr(file);
  }
  FAIL("the file was accepted");
  return "";
}

Names names_of(const std::string& training) {
  const tests::TemporaryDirectory directory;
  tests::write_text(directory / "train.csv", training);
  return dataflow::csv_class_names(directory / "train.csv", "species");
}

}  // namespace

TEST_CASE("csv: columns beside the label are numbers, and classes are the sorted names") {
  const auto data = load(kFlowers);
  CHECK(data->pixels() == std::vector<float>{1.5F, -2.0F, 0.0F, 100.0F, 3.0F, 0.25F, 4.0F, 5.0F});
  CHECK(data->labels() == Labels{1, 0, 2, 1});
  CHECK(names_of(kFlowers) == Names{"aster", "rose", "tulip"});
  CHECK(data->description() == dataflow::image_input({2, 1, 1}, 3));
  const dataflow::Example read(data->description());
  data->read(1, {}, read.features());
  CHECK(read.features().front().as<float>()[1] == 100.0F);
}

TEST_CASE("csv: whole numbers are classes themselves") {
  const std::string numbers = "species,a,b\n2,1,1\n10,2,2\n0,3,3\n";
  CHECK(load(numbers, "", 11)->labels() == Labels{2, 10, 0});
  CHECK(names_of(numbers).empty());
  const std::string mixed = "species,a,b\n2,1,1\n10,2,2\nx,3,3\n";
  CHECK(load(mixed)->labels() == Labels{1, 0, 2});
  CHECK(names_of(mixed) == Names{"10", "2", "x"});
  CHECK(names_of("species,a\n-1,1\n1,1\n") == Names{"-1", "1"});
}

TEST_CASE("csv: files may have quotes, blanks, empty lines, and the line ends and mark of Windows") {
  const Names plain = names_of(kFlowers);
  const std::string windows = "\xEF\xBB\xBF\"petal\",species,\"sepal\"\r\n1.5, rose ,-2\r\n\r\n0,\"aster\",1e2\r\n";
  CHECK(load(windows, "", 2)->pixels() == std::vector<float>{1.5F, -2.0F, 0.0F, 100.0F});
  CHECK(names_of(windows) == Names{"aster", "rose"});
  const std::string quoted = "petal,species,sepal\n1,\"a, \"\"b\"\"\nc\",2\n3,\"\"\"\",4";
  CHECK(load(quoted, "", 2)->labels() == Labels{1, 0});
  CHECK(names_of(quoted) == Names{"\"", "a, \"b\"\nc"});
  // A line break in quotes counts as a line.
  CHECK_THAT(failure(quoted + "\nx,y,z\n", "", 3),
             Catch::Matchers::StartsWith("train.csv:5: column 'petal': 'x' is no"));
}

TEST_CASE("csv: other sets have the training set's columns, in any order, and its classes") {
  const auto test = load(kFlowers, "sepal,petal,species\n7,8,tulip\n9,10,aster\n");
  CHECK(test->pixels() == std::vector<float>{8.0F, 7.0F, 10.0F, 9.0F});
  CHECK(test->labels() == Labels{2, 0});
  CHECK(failure(kFlowers, "sepal,petal,species\n7,8,tulpi\n") ==
        "test.csv:2: column 'species': the training set has no label 'tulpi'; did you mean 'tulip'?; its labels are "
        "aster, rose, tulip");
  CHECK(failure(kFlowers, "sepal,petals,species\n") ==
        "test.csv:1: column 'petal' of the training set is missing; did you mean 'petals'?; the columns are sepal, "
        "petals, species");
  CHECK(failure(kFlowers, "sepal,petal,species,x\n") == "test.csv:1: column 'x' is not in the training set; remove it");
  CHECK(failure(kFlowers, "sepal,petal,species\n") == "test.csv: has no row but the names of the columns");
  CHECK(failure("species,a,b\n0,1,1\n1,1,1\n", "species,a,b\none,1,1\n") ==
        "test.csv:2: column 'species': label 'one' is no whole number, but those of the training set are");
}

TEST_CASE("csv: the first line must fit the job") {
  CHECK(failure("petal,specie,sepal\n1,a,2\n") ==
        "train.csv:1: no column is named 'species'; did you mean 'specie'?; the columns are petal, specie, sepal; set "
        "data.csv.label to one of them");
  CHECK(failure("petal;species;sepal\n1;a;2\n") ==
        "train.csv:1: has one column, 'petal;species;sepal'; the first line names the columns, which are separated by "
        "commas");
  CHECK(failure(",a,species\n0,1,x\n") ==
        "train.csv:1: column 1 has no name; name it, or remove it (pandas leaves its index out with index=False)");
  CHECK(failure("a,a,species\n0,1,x\n") == "train.csv:1: two columns are named 'a'; rename one of them");
  CHECK(failure("a,species\n1,x\n") ==
        "train.csv:1: the number of columns beside the label 'species' is 1 (a), but the job has features: 2; set "
        "data.csv.features: 1, or remove columns");
  CHECK(failure(kFlowers, "", 4) ==
        "train.csv: the number of different labels in column 'species' is 3 (aster, rose, tulip), but the job has "
        "classes: 4; set data.csv.classes: 3");
  CHECK(failure("") == "train.csv: is empty; its first line names the columns");
  CHECK(failure("a,b,species\n\n") == "train.csv: has no row but the names of the columns");
}

TEST_CASE("csv: broken rows are named by line and column") {
  const auto broken = [](const std::string& row) { return failure("petal,species,sepal\n1,rose,2\n" + row, "", 1); };
  CHECK(broken("1,rose\n") ==
        "train.csv:3: has 2 fields, but the first line names 3 columns; put fields that hold commas in quotes");
  CHECK(broken("1,rose,2,3\n") ==
        "train.csv:3: has 4 fields, but the first line names 3 columns; put fields that hold commas in quotes");
  CHECK(broken("1,rose,red\n") ==
        "train.csv:3: column 'sepal': 'red' is no number; encode it as numbers, or remove the column");
  CHECK(broken("0x1,rose,1\n") ==
        "train.csv:3: column 'petal': '0x1' is no number; encode it as numbers, or remove the column");
  CHECK(broken(" ,rose,1\n") == "train.csv:3: column 'petal' is empty; write a number, or remove the row");
  CHECK(broken("1,,1\n") == "train.csv:3: column 'species' is empty; write the class, or remove the row");
  CHECK(broken("1,\"rose\"s,1\n") == "train.csv:3: 'rose' goes on after its quotes; write a quote within quotes twice");
  CHECK(broken("1,\"rose,1\n1,rose,1\n") == "train.csv:3: a quote is not closed before the end of the file");
  CHECK(broken("1,\"" + std::string(70'000, 'x') + "\",1\n") ==
        "train.csv:3: a field is longer than 65536 bytes; look for a quote that is not closed");
  for (const char* text : {"nan", "inf", "-inf", "1e39", "1e999"}) {
    CHECK(
        broken(fmt::format("1,rose,{}\n", text)) ==
        fmt::format("train.csv:3: column 'sepal': '{}' is not finite as float32; correct it, or remove the row", text));
  }
  CHECK(load("petal,species,sepal\n1e-999,rose,-1e-60\n", "", 1)->pixels() == std::vector<float>{0.0F, 0.0F});
  CHECK(failure("species,a,b\n3,1,1\n0,1,1\n") ==
        "train.csv:2: column 'species': label 3 is not in [0, 3); classes are numbered from 0, and data.csv.classes "
        "says how many there are");
}

TEST_CASE("csv: rows that do not fit into memory are refused") {
  std::string rows = "a,species,b\n";
  for (int i = 0; i < 20'000; ++i) rows += "1,x,2\n";
  CHECK(load(rows, "", 1)->size() == 20'000);
  try {
    load(rows, "", 1, 1 << 30);  // processes that share the memory
    FAIL("the file was accepted");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
    CHECK_THAT(error.what(),
               ContainsSubstring("train.csv: needs ") && ContainsSubstring("use fewer rows, or more memory"));
  }
}
