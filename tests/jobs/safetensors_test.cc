#include "saved_model/safetensors.h"

#include <bit>
#include <cstring>
#include <limits>

#include "engine/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

using dataflow::NamedTensor;
using tests::TemporaryDirectory;

std::vector<NamedTensor> some_tensors() {
  return {{"conv1.weight", {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}},
          {"conv1.bias", {2}, {-0.0F, std::numeric_limits<float>::denorm_min()}},
          {"empty", {0, 3}, {}},
          {"scalar", {}, {0.1F}}};
}

// Returns a file with this header followed by `data_bytes` zero bytes.
std::string file_with(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t size = header.size();
  std::string file(sizeof(size), '\0');
  std::memcpy(file.data(), &size, sizeof(size));
  return file + header + std::string(data_bytes, '\0');
}

// Returns the error message for a file with these bytes.
std::string refusal(const std::string& bytes) {
  const TemporaryDirectory directory;
  tests::write_text(directory / "model.safetensors", bytes);
  try {
    read_safetensors(directory / "model.safetensors");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    CHECK_THAT(error.what(), ContainsSubstring("model.safetensors"));
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("safetensors: tensors are read back bit by bit") {
  const TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const std::vector<NamedTensor> written = some_tensors();
  write_safetensors(path, written, {{"format", "arbalest"}});
  const std::vector<NamedTensor> read = read_safetensors(path);
  REQUIRE(read.size() == written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].name == written[i].name);
    CHECK(read[i].shape == written[i].shape);
    REQUIRE(read[i].values.size() == written[i].values.size());
    for (std::size_t k = 0; k < read[i].values.size(); ++k) {
      CHECK(std::bit_cast<std::uint32_t>(read[i].values[k]) == std::bit_cast<std::uint32_t>(written[i].values[k]));
    }
  }
}

TEST_CASE("safetensors: the bytes follow the format") {
  const TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const std::string hash = write_safetensors(path, std::vector<NamedTensor>{{"a", {2}, {1.0F, -2.0F}}}, {{"k", "v"}});
  const std::string header = R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  std::string expected = file_with(padded, 0);
  expected += std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);
  CHECK(tests::read_text(path) == expected);
  CHECK(padded.size() % 8 == 0);
  // Computed by `sha256sum`.
  CHECK(hash == "83e4d4f029b6149383fb7252c0060a353dc3c7152bf587a4a6e7332667bbca36");
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("safetensors: the same tensors give the same bytes") {
  const TemporaryDirectory directory;
  const std::string first = write_safetensors(directory / "a", some_tensors(), {{"x", "1"}, {"y", "2"}});
  const std::string second = write_safetensors(directory / "b", some_tensors(), {{"y", "2"}, {"x", "1"}});
  CHECK(first == second);
  CHECK(tests::read_text(directory / "a") == tests::read_text(directory / "b"));
}

TEST_CASE("safetensors: a file without tensors is valid") {
  const TemporaryDirectory directory;
  tests::write_text(directory / "a", file_with("{}", 0));
  CHECK(read_safetensors(directory / "a").empty());
}

TEST_CASE("safetensors: tensors are read in the order of their data") {
  const TemporaryDirectory directory;
  tests::write_text(directory / "a", file_with(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                                               R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )",
                                               8));
  const std::vector<NamedTensor> tensors = read_safetensors(directory / "a");
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a");
  CHECK(tensors[1].name == "b");
}

TEST_CASE("safetensors: damaged and hostile files are refused") {
  struct Case {
    const char* what;
    std::string bytes;
    const char* message;
  };
  const auto one = [](const std::string& fields, std::size_t data) {
    return file_with("{\"a\":{" + fields + "}}", data);
  };
  const std::string type = R"("dtype":"F32",)";
  const std::string huge = "4611686018427387904";  // 2^62
  const std::vector<Case> cases = {
      {"an empty file", "", "too few"},
      {"half a size", "\x02", "too few"},
      {"a header beyond the file", std::string("\x40\0\0\0\0\0\0\0{}", 10), "only 2 follow"},
      {"a header beyond the limit", std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10), "100000001 bytes"},
      {"a header of 2^64 - 1 bytes", std::string(8, '\xff') + "{}", "not a safetensors file"},
      {"an empty header", file_with("", 0), "does not begin with '{'"},
      {"blanks before the object", file_with(" {}", 0), "does not begin with '{'"},
      {"a list", file_with("[]", 0), "does not begin with '{'"},
      {"an object cut off", file_with("{\"a\":", 0), "not valid JSON"},
      {"something after the object", file_with("{}{}", 0), "not valid JSON"},
      {"something after a NUL", file_with(std::string("{}\0garbage", 10), 0), "NUL"},
      {"a comment", file_with("{/**/}", 0), "not valid JSON"},
      {"bad UTF-8", file_with("{\"\xff\":{}}", 0), "not valid JSON"},
      {"a number out of range", one(type + R"("shape":[1e999],"data_offsets":[0,4])", 4), "not valid JSON"},
      {"a tensor that is no object", file_with("{\"a\":1}", 0), "unexpected a number in 'a'"},
      {"metadata that is no object", file_with(R"({"__metadata__":"x"})", 0), "unexpected a string"},
      {"metadata that is no text", file_with(R"({"__metadata__":{"x":1}})", 0), "unexpected a number"},
      {"the same metadata twice", file_with(R"({"__metadata__":{"x":"1","x":"2"}})", 0), "the key 'x' twice"},
      {"no dtype", one(R"("shape":[1],"data_offsets":[0,4])", 4), "lacks dtype"},
      {"no shape", one(R"("dtype":"F32","data_offsets":[0,4])", 4), "lacks dtype"},
      {"no offsets", one(R"("dtype":"F32","shape":[1])", 4), "lacks dtype"},
      {"a field twice", one(type + type + R"("shape":[1],"data_offsets":[0,4])", 4), "'dtype' twice"},
      {"an unknown field", one(type + R"("shape":[1],"data_offsets":[0,4],"x":1)", 4), "unknown field 'x'"},
      {"a tensor twice",
       file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                 8),
       "'a' is listed twice"},
      {"another type", one(R"("dtype":"BF16","shape":[2],"data_offsets":[0,4])", 4), "type 'BF16'"},
      {"a negative extent", one(type + R"("shape":[-1],"data_offsets":[0,4])", 4), "negative number"},
      {"a fractional extent", one(type + R"("shape":[1.0],"data_offsets":[0,4])", 4), "fraction"},
      {"a boolean extent", one(type + R"("shape":[true],"data_offsets":[0,4])", 4), "boolean"},
      {"an extent of 2^63", one(type + R"("shape":[9223372036854775808],"data_offsets":[0,4])", 4), "out of range"},
      {"a size that overflows", one(type + "\"shape\":[" + huge + "," + huge + R"(],"data_offsets":[0,4])", 4),
       "overflows"},
      {"a size that overflows to the right number",
       one(type + "\"shape\":[4,1," + huge + R"(],"data_offsets":[0,0])", 0), "overflows"},
      {"six extents", one(type + R"("shape":[1,1,1,1,1,1],"data_offsets":[0,4])", 4), "too many extents"},
      {"a nested shape", one(type + R"("shape":[[1]],"data_offsets":[0,4])", 4), "unexpected an array"},
      {"one offset", one(type + R"("shape":[1],"data_offsets":[0])", 4), "two numbers"},
      {"three offsets", one(type + R"("shape":[1],"data_offsets":[0,4,4])", 4), "two numbers"},
      {"offsets backwards", one(type + R"("shape":[1],"data_offsets":[4,0])", 4), "lies at bytes 4 to 0"},
      {"offsets beyond the file", one(type + R"("shape":[2],"data_offsets":[0,8])", 4), "take 8 bytes, but 4 follow"},
      {"too few bytes for the shape", one(type + R"("shape":[2],"data_offsets":[0,4])", 4), "its shape needs 8"},
      {"a hole at the start", one(type + R"("shape":[1],"data_offsets":[4,8])", 8), "before it end at 0"},
      {"a hole",
       file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                 R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                 12),
       "before it end at 4"},
      {"an overlap",
       file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                 R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                 12),
       "before it end at 8"},
      {"bytes that belong to no tensor", one(type + R"("shape":[1],"data_offsets":[0,4])", 5), "but 5 follow"},
      {"deep nesting", file_with("{\"a\":" + std::string(100'000, '['), 0), "unexpected an array in 'a'"},
  };
  for (const Case& test : cases) {
    INFO(test.what);
    CHECK_THAT(refusal(test.bytes), ContainsSubstring(test.message));
  }
}

TEST_CASE("safetensors: who gives a file of torch.save learns how to write the right one") {
  CHECK_THAT(refusal("PK\x03\x04 and the rest of a zip file"), ContainsSubstring("safetensors.torch.save_file"));
  CHECK_THAT(refusal(std::string(20, '\x7f')), !ContainsSubstring("torch"));
}

TEST_CASE("safetensors: every truncation is refused") {
  const TemporaryDirectory directory;
  write_safetensors(directory / "whole", some_tensors(), {});
  const std::string whole = tests::read_text(directory / "whole");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK(refusal(whole.substr(0, size)) != "accepted");
  }
  CHECK(refusal(whole) == "accepted");
}

TEST_CASE("safetensors: a file with another hash than the saved one is refused") {
  const TemporaryDirectory directory;
  const auto path = directory / "model.safetensors";
  const std::string hash = write_safetensors(path, some_tensors(), {});
  CHECK(read_safetensors(path, hash).size() == some_tensors().size());
  std::string bytes = tests::read_text(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  tests::write_text(path, bytes);
  CHECK(read_safetensors(path).size() == some_tensors().size());
  try {
    read_safetensors(path, hash);
    FAIL("the changed file was accepted");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    CHECK_THAT(error.what(), ContainsSubstring(path.string()) &&
                                 ContainsSubstring("the run's summary says " + hash.substr(0, 12) + "...") &&
                                 ContainsSubstring("train again"));
  }
}

TEST_CASE("safetensors: a missing file and a directory are refused") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(read_safetensors(directory / "none"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(read_safetensors(directory.path()), ContainsSubstring("not a regular file"));
}

}  // namespace arbalest::jobs
