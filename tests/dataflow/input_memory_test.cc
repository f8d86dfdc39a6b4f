// Readers that keep data in memory ask for it first, and take no more than they keep. The files are sparse, so they
// take no space on the disk.
#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/formats/cifar.h"
#include "dataflow/input/formats/growing_vector.h"
#include "dataflow/input/formats/idx.h"
#include "dataflow/input/formats/libsvm.h"
#include "dataflow/input/formats/npy.h"
#include "dataflow/input/formats/npy_array.h"
#include "dataflow/input/formats/ratings.h"
#include "engine/base/error.h"
#include "engine/host/memory_budget.h"
#include "tests/support/address_space_limit.h"
#include "tests/support/catch.h"
#include "tests/support/idx_writer.h"
#include "tests/support/npy_writer.h"
#include "tests/support/sanitized.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kLarge = 256 * kMebibyte;  // bytes of each file's data
constexpr std::int64_t kFree = 96 * kMebibyte;

// Writes a file of this start, with zeros up to `bytes` behind it.
void write_sparse(const fs::path& path, const std::string& start, std::uint64_t bytes) {
  write_text(path, start);
  fs::resize_file(path, start.size() + bytes);
}

// Returns the error of a reader for which `free` bytes are free; it must be one of memory.
std::string shortage(const std::function<void()>& read, std::int64_t free = kFree) {
  const AddressSpaceLimit limit(free);
  try {
    read();
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kOutOfMemory);
    return error.what();
  }
  FAIL("the data was accepted");
  return "";
}

// A field of /proc/self/status, in bytes.
std::int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  FAIL("no " + key);
  return 0;
}

}  // namespace

TEST_CASE("memory: arrays beyond the free memory are refused with bytes and remedy, before anything is allocated",
          "[input]") {
  const TemporaryDirectory directory;
  const dataflow::InputDescription image = dataflow::image_input({1, 64, 64}, 2);
  const std::string shape = fmt::format("{}, 64, 64", kLarge / 4096);
  write_sparse(directory / "bytes.npy", npy("|u1", shape, ""), kLarge);
  write_sparse(directory / "floats.npy", npy("<f4", fmt::format("{}, 64, 64", kLarge / 4096 / 4), ""), kLarge);
  write_sparse(directory / "ids.npy", npy("<i8", fmt::format("{}, 2", kLarge / 16), ""), kLarge);
  write_text(directory / "labels.npy", npy("|u1", "1,", std::string(1, '\0')));
  const auto source = [&](const char* name) {
    return dataflow::SplitFiles{"own", directory / name, directory / "labels.npy", image, {}};
  };
  CHECK_THAT(shortage([&] { dataflow::load_npy<std::uint8_t>(source("bytes.npy")); }),
             ContainsSubstring("bytes.npy: needs 268435456 bytes (256.0 MiB) of memory, but ") &&
                 ContainsSubstring(" are free; ") && ContainsSubstring("arbalest data convert"));
  CHECK_THAT(shortage([&] { dataflow::load_npy<float>(source("floats.npy")); }),
             ContainsSubstring("floats.npy: needs 268435456 bytes") && ContainsSubstring("uint8"));
  CHECK_THAT(shortage([&] {
               dataflow::load_ratings(
                   {"own", directory / "ids.npy", directory / "labels.npy", dataflow::ratings_input({1, 1})});
             }),
             ContainsSubstring("ids.npy: needs 134217728 bytes") && ContainsSubstring("use fewer ratings"));
}

TEST_CASE("memory: IDX and CIFAR files beyond the free memory are refused, also compressed ones", "[input]") {
  const TemporaryDirectory directory;
  const std::string header = idx_header({static_cast<std::uint32_t>(kLarge / 1024), 32, 32});
  const dataflow::IdxSource source{"mnist", directory.path(), dataflow::image_input({1, 32, 32}, 10), {}};
  write_sparse(directory / "train-images-idx3-ubyte", header, kLarge);
  const auto read = [&] { dataflow::load_idx(source, dataflow::Split::kTrain); };
  CHECK_THAT(shortage(read), ContainsSubstring("train-images-idx3-ubyte: needs 268435456 bytes"));
  fs::remove(directory / "train-images-idx3-ubyte");
  write_text(directory / "train-images-idx3-ubyte.gz", gzip(header + std::string(kLarge, '\0')));
  malloc_trim(0);
  CHECK_THAT(shortage(read), ContainsSubstring("train-images-idx3-ubyte.gz: needs 268435456 bytes"));

  constexpr std::uint64_t kRecords = kLarge / 3073;
  write_sparse(directory / "test_batch.bin", "", kRecords * 3073);
  std::vector<std::string> warnings;
  CHECK_THAT(
      shortage([&] {
        dataflow::load_cifar({dataflow::CifarVersion::k10, directory.path(), {}}, dataflow::Split::kTest, warnings);
      }),
      ContainsSubstring(fmt::format("test: needs {} bytes", kRecords * 3072)));
}

TEST_CASE("memory: rows of text are refused when they outgrow the free memory", "[input]") {
  const TemporaryDirectory directory;
  std::string rows;
  for (int row = 0; row < 20'000; ++row) {
    rows += "1";
    for (int feature = 1; feature <= 400; ++feature) rows += fmt::format(" {}:1", feature);
    rows += '\n';
  }
  write_text(directory / "rows.libsvm", gzip(rows));  // 8 million entries of 8 bytes
  rows = {};
  rows.shrink_to_fit();
  CHECK_THAT(shortage([&] { dataflow::load_libsvm(directory / "rows.libsvm", 400); }, kFree / 3),
             ContainsSubstring("rows.libsvm: needs ") && ContainsSubstring("use fewer rows or features"));
}

TEST_CASE("memory: a vector that may not grow stays as it is", "[input]") {
  std::vector<std::int64_t> vector = {1, 2, 3};
  const dataflow::GrowthLimit limit{engine::host::MemoryBudget(), "rows", "use fewer"};
  make_room(vector, 5, limit);
  CHECK(vector.capacity() >= 8);
  CHECK_THROWS_AS(make_room(vector, std::size_t{1} << 50U, limit), engine::Error);
  CHECK(vector == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("memory: processes of one machine share what is free in equal parts, and what one takes counts", "[input]") {
  const engine::host::MemoryBudget whole;
  const engine::host::MemoryBudget quarter(4);
  const std::size_t part = quarter.left_bytes();
  CHECK(static_cast<double>(part) == Approx(static_cast<double>(whole.left_bytes()) / 4).epsilon(0.2));
  const std::vector<char> taken(64 * kMebibyte, '\1');
  CHECK(quarter.left_bytes() + 60 * kMebibyte < part);
  CHECK_THROWS_WITH(quarter.require(part, "rows", "use fewer"),
                    ContainsSubstring(" are free for this process; use fewer"));
  CHECK_NOTHROW(quarter.require(part / 2, "rows", "use fewer"));
}

TEST_CASE("memory: float64 numbers take the memory of their float32 copy and little more", "[input]") {
  constexpr std::uint64_t kRows = 3 << 20;  // of 8 numbers: 192 MiB as float64, 96 MiB as float32
  constexpr std::int64_t kCopy = static_cast<std::int64_t>(kRows) * 8 * 4;
  const TemporaryDirectory directory;
  const fs::path path = directory / "rows.npy";
  write_sparse(path, npy("<f8", fmt::format("{}, 8", kRows), ""), kRows * 8 * 8);
  {
    // The last number is 1.5, and so is read from the last piece.
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const double last = 1.5;
    file.seekp(-static_cast<std::streamoff>(sizeof last), std::ios::end);
    file.write(reinterpret_cast<const char*>(&last), sizeof last);
  }
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew, if other tests ran in this process
  const std::int64_t before = status_bytes("VmRSS");
  std::vector<float> numbers;
  {
    const AddressSpaceLimit limit(kCopy + 64 * kMebibyte);
    dataflow::InputFile file(path, true);
    const dataflow::NpyHeader header = dataflow::read_npy_header(file);
    numbers = dataflow::read_floats(file, header, "pixel", 8);
  }
  CHECK(numbers.size() == kRows * 8);
  CHECK(numbers.front() == 0.0F);
  CHECK(numbers.back() == 1.5F);
  if (!kSanitized) CHECK(status_bytes("VmHWM") - before < kCopy + 64 * kMebibyte);
}

TEST_CASE("memory: the first number that is not finite is named, whichever piece it is in", "[input]") {
  std::vector<double> numbers(100'000, 0.25);
  numbers[70'001] = 1e300;
  numbers[90'000] = std::numeric_limits<double>::infinity();
  const TemporaryDirectory directory;
  write_text(directory / "rows.npy", npy("<f8", "50000, 2", bytes_of(numbers)));
  dataflow::InputFile file(directory / "rows.npy", true);
  const dataflow::NpyHeader header = dataflow::read_npy_header(file);
  CHECK_THROWS_WITH(dataflow::read_floats(file, header, "pixel", 2),
                    ContainsSubstring("record 35000: element 1: pixel 1e+300 is beyond float32"));
}

TEST_CASE("memory: labels of several pieces are read, and a wrong one is named", "[input]") {
  std::vector<std::int16_t> labels(100'000);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int16_t>(i % 7);
  const TemporaryDirectory directory;
  write_text(directory / "images.npy", npy("|u1", "100000, 1, 1", std::string(100'000, '\1')));
  const auto load = [&] {
    write_text(directory / "labels.npy", npy("<i2", "100000,", bytes_of(labels)));
    return dataflow::load_npy<std::uint8_t>(
        {"own", directory / "images.npy", directory / "labels.npy", dataflow::image_input({1, 1, 1}, 7), {}});
  };
  CHECK(load()->labels()[99'999] == 99'999 % 7);
  labels[65'537] = -1;
  CHECK_THROWS_WITH(load(), ContainsSubstring("record 65537: label -1 is not in [0, 7)"));
}

}  // namespace arbalest::tests
