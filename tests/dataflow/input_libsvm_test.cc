#include "dataflow/input/formats/libsvm.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "dataflow/input/sparse/sparse_columns.h"
#include "tests/support/catch.h"
#include "tests/support/data_failure.h"
#include "tests/support/sparse_data.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using dataflow::ColumnOfOnes;
using dataflow::SparseRows;

SparseRows load(const std::string& text, std::int64_t features = 20) {
  const tests::TemporaryDirectory directory;
  tests::write_text(directory / "rows.libsvm", text);
  return dataflow::load_libsvm(directory / "rows.libsvm", features);
}

std::string failure(const std::string& text, std::int64_t features = 20) {
  return tests::data_failure([&] { load(text, features); });
}

void check_equal(const SparseRows& a, const SparseRows& b) {
  CHECK(a.columns == b.columns);
  CHECK(a.starts == b.starts);
  CHECK(a.indices == b.indices);
  CHECK(a.values == b.values);
  CHECK(a.labels == b.labels);
}

}  // namespace

TEST_CASE("libsvm: rows, comments, blank lines, CRLF and explicit zeros") {
  const SparseRows rows = load("+1 3:0.5 17:-2e1\r\n\n# a comment\n-1 1:+4 2:0 20:1 # behind a row\n \t1\n");
  CHECK(rows.columns == 20);
  CHECK(rows.starts == std::vector<std::int64_t>{0, 2, 4, 4});
  CHECK(rows.indices == std::vector<std::int32_t>{2, 16, 0, 19});
  CHECK(rows.values == std::vector<float>{0.5F, -20.0F, 4.0F, 1.0F});
  CHECK(rows.labels == std::vector<std::int8_t>{1, -1, 1});
}

TEST_CASE("libsvm: labels are -1 and 1, or 0 and 1") {
  CHECK(load("0 1:1\n1 1:1\n0\n").labels == std::vector<std::int8_t>{-1, 1, -1});
  CHECK(load("-1.0 1:1\n+1.0 1:1\n").labels == std::vector<std::int8_t>{-1, 1});
  CHECK_THAT(failure("1 1:1\n-1 1:1\n0 1:1\n"),
             ContainsSubstring("rows.libsvm:3: label 0 is in a file with label -1 (line 2)"));
  CHECK_THAT(failure("1 1:1\n2 1:1\n"), ContainsSubstring("rows.libsvm:2: label '2' is none of"));
  CHECK_THAT(failure("nan 1:1\n"), ContainsSubstring(":1: label 'nan'"));
  CHECK_THAT(failure("3:1\n"), ContainsSubstring(":1: label '3:1'"));
}

TEST_CASE("libsvm: a file longer than the reader's buffer, raw and compressed") {
  const SparseRows made = tests::make_sparse_rows({.rows = 5000, .columns = 300, .entries = 12}, 1);
  const std::string text = tests::libsvm_text(made);
  REQUIRE(text.size() > 4U * 65536U);
  check_equal(load(text, 300), made);
  const tests::TemporaryDirectory directory;
  const std::string path = (directory / "rows.gz").string();
  gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size()));
  gzclose(file);
  check_equal(dataflow::load_libsvm(path, 300), made);
}

TEST_CASE("libsvm: damaged rows are named with their line") {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : std::vector<Case>{
           {"+1 5:1 3:1\n", ":1: feature number 3 does not ascend from 5"},
           {"+1 5:1 5:2\n", ":1: feature number 5 does not ascend from 5"},
           {"+1 5:0 3:1\n", ":1: feature number 3 does not ascend from 5"},
           {"+1 1:1\n-1 0:1\n", ":2: feature number 0: features are counted from 1"},
           {"+1 -2:1\n", ":1: feature number -2 is negative"},
           {"+1 1:1\n+1 21:1\n", ":2: feature number 21 is beyond the 20 features of the model"},
           {"+1 99999999999999999999:1\n", ":1: feature number 99999999999999999999 is beyond the 20 features"},
           {"+1 -99999999999999999999:1\n", ":1: feature number -99999999999999999999 is negative"},
           {"2 1:1\n", ":1: label '2' is none of -1 and 1, or 0 and 1"},
           {"+1 3:1e400\n", ":1: value '1e400' of feature 3 is not finite as float32"},
           {"+1 1.5:1\n", ":1: feature number '1.5' is no whole number"},
           {"+1 3:nan\n", ":1: value 'nan' of feature 3 is not finite"},
           {"+1 3:-inf\n", ":1: value '-inf' of feature 3 is not finite"},
           {"+1 3:1e39\n", ":1: value '1e39' of feature 3 is not finite as float32"},
           {"+1 3:1x\n", ":1: value '1x' of feature 3 is no number"},
           {"+1 3:\n", ":1: feature 3 has no value"},
           {"+1 3\n", ":1: '3' is no feature:value pair"},
           {"+1 qid:3 1:1\n", ":1: 'qid:3' is for ranking"},
           {"+1 \x01\xFF:1\n", ":1: feature number '?\?' is no whole number"},
       }) {
    INFO(c.text);
    CHECK_THAT(failure(c.text), ContainsSubstring(c.message));
  }
  CHECK_THAT(failure("+1 1:" + std::string(100, '1') + "\n"), ContainsSubstring("is too long for a number"));
}

TEST_CASE("libsvm: a file that is cut in a line, is empty or is not there") {
  for (const char* text :
       {"+1 1:1\n-1 2:1 3:0.", "+1 1:1\n-1 2:1 3:", "+1 1:1\n-1 2:1 ", "+1 1:1\n-", "+1 1:1\n# no"}) {
    INFO(text);
    CHECK_THAT(failure(text), ContainsSubstring("rows.libsvm:2: the file ends without a line break"));
  }
  for (const char* text : {"", "\n\n", "# only a comment\n"})
    CHECK_THAT(failure(text), ContainsSubstring("has no row"));
  CHECK_THAT(tests::data_failure([] { dataflow::load_libsvm("absent.libsvm", 3); }),
             ContainsSubstring("absent.libsvm: cannot be opened"));
}

TEST_CASE("sparse columns: parts of the rows hold every number once") {
  const SparseRows rows = tests::make_sparse_rows({.rows = 101, .columns = 30, .entries = 5}, 3);
  for (const int parts : {1, 3, 7}) {
    const std::vector<std::int64_t> first = dataflow::equal_parts(rows, parts);
    REQUIRE(first.size() == static_cast<std::size_t>(parts) + 1);
    CHECK(first.back() == rows.rows());
    std::vector<std::vector<float>> dense(101, std::vector<float>(31, 0.0F));
    for (std::size_t part = 0; part + 1 < first.size(); ++part) {
      const auto columns = dataflow::columns_of(rows, first[part], first[part + 1], ColumnOfOnes::kYes);
      REQUIRE(columns.starts.size() == 32);
      CHECK(columns.values.size() <= rows.values.size() * 2 / static_cast<std::size_t>(parts) + 101);
      for (std::size_t j = 0; j < 31; ++j) {
        for (auto e = static_cast<std::size_t>(columns.starts[j]); std::cmp_less(e, columns.starts[j + 1]); ++e) {
          dense[static_cast<std::size_t>(first[part] + columns.rows[e])][j] += columns.values[e];
        }
      }
    }
    for (std::size_t row = 0; row < dense.size(); ++row) {
      std::vector<float> expected(31, 0.0F);
      expected[30] = 1.0F;
      for (auto e = static_cast<std::size_t>(rows.starts[row]); std::cmp_less(e, rows.starts[row + 1]); ++e) {
        expected[static_cast<std::size_t>(rows.indices[e])] = rows.values[e];
      }
      CHECK(dense[row] == expected);
    }
  }
  const std::vector<std::int64_t> few = dataflow::equal_parts(tests::make_sparse_rows({.rows = 2}, 1), 5);
  CHECK(few.size() == 6);
  CHECK(std::ranges::is_sorted(few));
}
