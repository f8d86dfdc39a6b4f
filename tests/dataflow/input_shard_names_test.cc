// Shards that are missing, twice there or of several versions, according to their names.
#include "dataflow/input/formats/records/shard_names.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "dataflow/input/formats/image_records.h"
#include "dataflow/input/formats/records/record_file.h"
#include "tests/support/catch.h"
#include "tests/support/data_failure.h"
#include "tests/support/image_writer.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using tests::data_failure;

std::vector<std::filesystem::path> paths(std::initializer_list<std::string_view> names) {
  std::vector<std::filesystem::path> result;
  for (const std::string_view name : names) result.push_back(std::filesystem::path("data") / name);
  return result;
}

// Returns the error; "" if the shards are complete.
std::string problem_of(std::initializer_list<std::string_view> names) {
  try {
    dataflow::check_complete(paths(names));
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    return error.what();
  }
  return "";
}

void write_shard(const std::filesystem::path& path, std::int64_t label) {
  const std::string image = tests::png(tests::gradient(5, 4, 3, 1));
  dataflow::RecordWriter writer(path);
  writer.write(dataflow::make_image_record({label, {image.begin(), image.end()}}, "name"));
  writer.close();
}

}  // namespace

TEST_CASE("shards: a missing one is an error, whatever follows the number", "[input]") {
  for (const std::string end : {"", ".tfrecord", ".tfrecord.gz", ".gz", "-v2.tfrecord", "_pets"}) {
    CAPTURE(end);
    const std::string first = "train-00000-of-00003" + end;
    const std::string second = "train-00001-of-00003" + end;
    const std::string third = "train-00002-of-00003" + end;
    CHECK(problem_of({first, second, third}).empty());
    CHECK(problem_of({first, third}) ==
          "data: dataset is incomplete: there are 2 of the shards train-...-of-00003" + end + "; missing: 1");
    CHECK_THAT(problem_of({second, third}), ContainsSubstring("missing: 0"));
    CHECK_THAT(problem_of({third}), ContainsSubstring("there are 1 of the shards") && ContainsSubstring("0, 1"));
  }
  CHECK_THAT(problem_of({"train_1-of-4.tfrecord", "train_3-of-4.tfrecord", "train_4-of-4.tfrecord"}),
             ContainsSubstring("train_...-of-4.tfrecord; missing: 2"));
  CHECK_THAT(problem_of({"0-of-2"}), ContainsSubstring("there are 1 of the shards ...-of-2; missing: 1"));
  CHECK_THAT(problem_of({"a-00000-of-01000"}), ContainsSubstring("missing: 1, 2, 3, 4, 5 and 994 more"));
}

TEST_CASE("shards: they are numbered from 0 or from 1", "[input]") {
  CHECK(problem_of({"a-0-of-2", "a-1-of-2"}).empty());
  CHECK(problem_of({"a-1-of-2", "a-2-of-2"}).empty());
  CHECK_THAT(problem_of({"a-0-of-2", "a-2-of-2"}),
             ContainsSubstring("data/a-2-of-2: the number of this shard is beyond the 2 shards"));
  CHECK_THAT(problem_of({"a-0-of-0"}), ContainsSubstring("beyond the 0 shards"));
}

TEST_CASE("shards: one that is there twice is an error", "[input]") {
  CHECK(problem_of({"a-00000-of-00002", "a-00001-of-00002", "a-00001-of-00002.gz"}) ==
        "data/a-00001-of-00002.gz: is the same shard as a-00001-of-00002: its examples would count twice; remove one "
        "of the files, or give the job a pattern that matches one of them");
  CHECK_THAT(problem_of({"a-0-of-2", "a-00-of-2", "a-1-of-2"}), ContainsSubstring("the same shard"));
  // The number of files is right, and yet one shard is missing.
  CHECK_THAT(problem_of({"a-0-of-2.tfrecord", "a-0-of-2.tfrecord.gz"}), ContainsSubstring("the same shard"));
}

TEST_CASE("shards: names of one set that state different counts are an error", "[input]") {
  CHECK_THAT(problem_of({"a-0-of-1", "a-0-of-2", "a-1-of-2"}),
             ContainsSubstring("data/a-0-of-1: names a set of 1 shards, and a-0-of-2 one of 2"));
  CHECK_THAT(problem_of({"a-00000-of-00002.tfrecord", "a-00001-of-00003.tfrecord"}),
             ContainsSubstring("shards of two versions"));
}

TEST_CASE("shards: files with other names are sets of their own", "[input]") {
  CHECK(problem_of({"train-a-0-of-1", "train-b-0-of-2", "train-b-1-of-2", "train-0-of-1-pets", "train-c"}).empty());
  CHECK_THAT(problem_of({"train-a-0-of-1", "train-b-1-of-2"}), ContainsSubstring("train-b-...-of-2; missing: 0"));
  // Only the last number of shards counts.
  CHECK(problem_of({"fold-1-of-5-train-0-of-1", "fold-2-of-5-train-0-of-1"}).empty());
  CHECK(problem_of({"train", "train-of-4", "train-x-of-4", "1-of-", "train-00001"}).empty());
  CHECK(problem_of({}).empty());
}

TEST_CASE("shards: a set with a missing one is not opened", "[input]") {
  const tests::TemporaryDirectory directory;
  engine::host::Pool pool(2);
  const auto open = [&] { return dataflow::open_image_records({directory.path(), "train-*", 0, 3}, pool); };
  for (const std::int64_t shard : {0, 2, 3}) {
    write_shard(directory / ("train-0000" + std::to_string(shard) + "-of-00004.tfrecord"), 1);
  }
  CHECK_THAT(data_failure(open),
             ContainsSubstring("there are 3 of the shards train-...-of-00004.tfrecord; missing: 1"));
  write_shard(directory / "train-00001-of-00004.tfrecord", 1);
  CHECK(open()->size() == 4);
}
