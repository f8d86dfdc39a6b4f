#include "dataflow/input/formats/ratings.h"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/example.h"
#include "engine/backends/devices.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "engine/ops/softmax_cross_entropy.h"
#include "tests/support/catch.h"
#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
using tests::bytes_of;
using tests::npy;
using tests::npy_file;

// Three records, each with one of 5 users and one of 4 items.
const std::vector<std::int32_t> kIdValues{4, 0, 0, 3, 2, 2};
const std::string kIds = npy("<i4", "3, 2", bytes_of(kIdValues));
const std::string kTargets = npy("<f4", "3,", bytes_of<float>({1.5F, -2.0F, 4.0F}));

std::unique_ptr<dataflow::Ratings> load(const std::string& ids, const std::string& targets) {
  const tests::TemporaryDirectory directory;
  tests::write_text(directory / "ids.npy", ids);
  tests::write_text(directory / "targets.npy", targets);
  return dataflow::load_ratings(
      {"own train", directory / "ids.npy", directory / "targets.npy", dataflow::ratings_input({5, 4})});
}

std::string failure(const std::string& ids, const std::string& targets) {
  try {
    load(ids, targets);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kData);
    CHECK_THAT(error.what(), ContainsSubstring(".npy"));
    return error.what();
  }
  FAIL("the arrays were accepted");
  return "";
}

std::array<std::int32_t, 2> ids_of(const dataflow::Ratings& data, std::int64_t example) {
  const dataflow::Example read(data.description());
  data.read(example, {}, read.features());
  const std::span ids = read.features().front().as<std::int32_t>();
  return {ids[0], ids[1]};
}

float target_of(const dataflow::Ratings& data, std::int64_t example) {
  const dataflow::Example read(data.description());
  data.read_label(example, read.label());
  return read.label().as<float>().front();
}

void check_content(const dataflow::Ratings& data) {
  REQUIRE(data.size() == 3);
  for (std::int64_t n = 0; n < 3; ++n) {
    const auto at = static_cast<std::size_t>(2 * n);
    CHECK(ids_of(data, n) == std::array{kIdValues[at], kIdValues[at + 1]});
  }
  CHECK(target_of(data, 0) == 1.5F);
  CHECK(target_of(data, 1) == -2.0F);
  CHECK(target_of(data, 2) == 4.0F);
}

}  // namespace

TEST_CASE("ratings: ids of any integer type and targets of both types are read", "[input]") {
  const auto data = load(kIds, kTargets);
  CHECK(data->name() == "own train");
  CHECK(data->description() == dataflow::ratings_input({5, 4}));
  CHECK(data->memory_bytes() == 9 * 4);
  CHECK_FALSE(data->stored_bytes().has_value());
  check_content(*data);
  check_content(*load(npy("<i8", "3, 2", bytes_of<std::int64_t>({4, 0, 0, 3, 2, 2})), kTargets));
  check_content(*load(npy("|u1", "3, 2", bytes_of<std::uint8_t>({4, 0, 0, 3, 2, 2})), kTargets));
  check_content(*load(kIds, npy("<f8", "3,", bytes_of<double>({1.5, -2.0, 4.0}))));
}

TEST_CASE("ratings: every prefix and trailing bytes are refused", "[input]") {
  for (std::size_t bytes = 0; bytes < kIds.size(); ++bytes) {
    CHECK_THAT(failure(kIds.substr(0, bytes), kTargets), ContainsSubstring("truncated"));
  }
  for (std::size_t bytes = 0; bytes < kTargets.size(); ++bytes) {
    CHECK_THAT(failure(kIds, kTargets.substr(0, bytes)), ContainsSubstring("truncated"));
  }
  CHECK_THAT(failure(kIds + "x", kTargets), ContainsSubstring("goes on after byte"));
}

TEST_CASE("ratings: arrays of another type or shape are refused, with the one that is needed", "[input]") {
  CHECK_THAT(failure(npy("<f4", "3, 2", std::string(24, '\0')), kTargets),
             ContainsSubstring("is of type '<f4'; ids are integers"));
  CHECK_THAT(failure(npy(">i4", "3, 2", std::string(24, '\0')), kTargets), ContainsSubstring("little endian"));
  CHECK_THAT(failure(kIds, npy("<i4", "3,", std::string(12, '\0'))),
             ContainsSubstring("is of type '<i4'; targets are floating-point numbers"));
  CHECK_THAT(failure(npy("<i4", "6,", std::string(24, '\0')), kTargets),
             ContainsSubstring("has the shape (6), but the job's ids need (n, 2): data.ratings.sizes has 2 numbers"));
  CHECK_THAT(failure(npy("<i4", "2, 3", std::string(24, '\0')), kTargets), ContainsSubstring("need (n, 2)"));
  CHECK_THAT(failure(kIds, npy("<f4", "3, 1", std::string(12, '\0'))),
             ContainsSubstring("has the shape (3, 1), but targets have one dimension"));
  CHECK_THAT(
      failure(npy_file("{'descr': '<i4', 'fortran_order': True, 'shape': (3, 2), }", std::string(24, '\0')), kTargets),
      ContainsSubstring("Fortran order"));
  CHECK_THAT(failure(kIds, npy("|O", "3,", "pickled")), ContainsSubstring("pickled Python objects"));
  CHECK_THAT(failure(kIds, npy("<f4", "2,", std::string(8, '\0'))),
             ContainsSubstring("holds 3 records") && ContainsSubstring("holds 2 targets; the files do not belong"));
}

TEST_CASE("ratings: the error for an invalid id or target names its record", "[input]") {
  CHECK_THAT(failure(npy("<i4", "3, 2", bytes_of<std::int32_t>({4, 0, 0, -1, 2, 2})), kTargets),
             ContainsSubstring("ids.npy: record 1: column 1: id -1 is not in [0, 4); number the ids from 0"));
  CHECK_THAT(failure(npy("<i4", "3, 2", bytes_of<std::int32_t>({4, 0, 0, 3, 5, 2})), kTargets),
             ContainsSubstring("record 2: column 0: id 5 is not in [0, 5)") &&
                 ContainsSubstring("or write how many there are to data.ratings.sizes[0]"));
  CHECK_THAT(failure(npy("<u8", "3, 2", bytes_of<std::uint64_t>({4, ~std::uint64_t{0}, 0, 3, 2, 2})), kTargets),
             ContainsSubstring("record 0: column 1: id"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(failure(kIds, npy("<f4", "3,", bytes_of<float>({1.0F, nan, 1.0F}))),
             ContainsSubstring("targets.npy: record 1: target nan is no finite number"));
  CHECK_THAT(failure(kIds, npy("<f4", "3,", bytes_of<float>({1.0F, 1.0F, 1.0F / 0.0F}))),
             ContainsSubstring("record 2: target inf is no finite number"));
  CHECK_THAT(failure(kIds, npy("<f8", "3,", bytes_of<double>({1.0, 1.0, -1e300}))),
             ContainsSubstring("record 2: target -1e+300 is beyond float32"));
}

TEST_CASE("ratings: the padding of a batch has NaN labels", "[input]") {
  const auto data = load(kIds, kTargets);
  engine::host::Pool pool(1);
  const auto device = engine::open_device(engine::parse_device("cpu"));
  dataflow::SequentialOrder order(3, 4);
  dataflow::BatchRing ring(*data, order, *device, pool, 2);
  const auto batch = ring.next();
  REQUIRE(batch.has_value());
  CHECK(batch->examples == 3);
  const std::span ids = batch->tensors.front().as<const std::int32_t>();
  CHECK(std::vector<std::int32_t>(ids.begin(), ids.begin() + 6) == kIdValues);
  const std::span targets = batch->tensors.back().as<const float>();
  CHECK(targets[2] == 4.0F);
  CHECK(std::isnan(targets[3]));
  ring.release(0);
}
