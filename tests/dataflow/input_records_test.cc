// TFRecord shards and the images in them.
#include "dataflow/input/formats/image_records.h"

#include <sys/resource.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "dataflow/input/formats/records/crc32c.h"
#include "dataflow/input/formats/records/record_file.h"
#include "engine/base/error.h"
#include "tensorflow/example.pb.h"
#include "tests/support/catch.h"
#include "tests/support/data_failure.h"
#include "tests/support/image_writer.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace arbalest;
namespace fs = std::filesystem;
using dataflow::crc32c;
using dataflow::ImageRecord;
using dataflow::OnUnreadable;
using dataflow::RecordFile;
using dataflow::RecordWriter;
using tests::data_failure;
using tests::gradient;
using tests::png;
using tests::read_text;
using tests::TemporaryDirectory;
using tests::write_text;
using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

void write_records(const std::filesystem::path& path, const std::vector<Bytes>& records) {
  RecordWriter writer(path);
  for (const Bytes& record : records) writer.write(record);
  writer.close();
}

Bytes image_record(std::int64_t label, int seed) {
  return dataflow::make_image_record({label, bytes_of(png(gradient(5, 4, 3, seed)))}, "name");
}

std::unique_ptr<const dataflow::EncodedExamples> open(const TemporaryDirectory& directory, std::int64_t first_label = 0,
                                                      OnUnreadable on_unreadable = OnUnreadable::kStop) {
  engine::host::Pool pool(2);
  return dataflow::open_image_records({directory.path(), "train-*", first_label, 3, on_unreadable}, pool);
}

tensorflow::Feature& add_feature(tensorflow::Example& example, const char* name) {
  tensorflow::Features::Entry& entry = *example.mutable_features()->add_feature();
  entry.set_key(name);
  return *entry.mutable_value();
}

// Bytes that this process has requested from the system.
std::uint64_t bytes_read() {
  if (tests::kSanitized) tests::skip_test("a sanitizer reads, too: the map of the memory, for each thread");
  std::ifstream file("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  if (!(file >> name >> bytes) || name != "rchar:") tests::skip_test("/proc/self/io does not tell what is read");
  return bytes;
}

}  // namespace

TEST_CASE("records: CRC-32C has the values of its definition", "[input]") {
  CHECK(crc32c(bytes_of("123456789")) == 0xE3069283U);
  CHECK(crc32c(Bytes(32, 0)) == 0x8A9136AAU);
  CHECK(crc32c({}) == 0U);
}

TEST_CASE("records: a file has the bytes that TensorFlow writes", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "a", {bytes_of("abc")});
  // Length 3, its masked checksum, the data, its masked checksum, as tf.io.TFRecordWriter writes them.
  const std::string file = read_text(directory / "a");
  CHECK(file.size() == 8 + 4 + 3 + 4);
  CHECK(file.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(file.substr(12, 3) == "abc");
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, file.data() + 15, sizeof(checksum));
  const std::uint32_t crc = crc32c(bytes_of("abc"));
  CHECK(crc == 0x364B3FB7U);
  CHECK(checksum == ((crc >> 15U | crc << 17U) + 0xA282EAD8U));
}

TEST_CASE("records: what was written is read, in any order", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "a", {bytes_of("first"), {}, Bytes(100'000, 7)});
  const RecordFile file(directory / "a");
  REQUIRE(file.size() == 3);
  CHECK(file.read(2) == Bytes(100'000, 7));
  CHECK(file.read(1).empty());
  CHECK(file.read(0) == bytes_of("first"));
  CHECK(file.describe(1) == (directory / "a").string() + ": record 1 (byte 21)");
}

TEST_CASE("records: a file that ends within a record is refused, and the error names the record", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "a", {bytes_of("first"), bytes_of("second")});
  const std::string whole = read_text(directory / "a");
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    write_text(directory / "a", whole.substr(0, bytes));
    if (bytes == 21) {
      CHECK(RecordFile(directory / "a").size() == 1);
      continue;
    }
    CHECK_THAT(data_failure([&] { RecordFile(directory / "a"); }),
               ContainsSubstring(bytes < 21 ? "truncated within record 0" : "truncated within record 1 (byte 21)"));
  }
  write_text(directory / "a", whole + "trailing bytes");
  CHECK_THAT(data_failure([&] { RecordFile(directory / "a"); }), ContainsSubstring("record 2 (byte 43)"));
  CHECK_THAT(data_failure([&] { RecordFile(directory / "none"); }), ContainsSubstring("cannot be opened"));
  CHECK_THAT(data_failure([&] { RecordFile(directory.path()); }), ContainsSubstring("is not a regular file"));
}

TEST_CASE("records: the error for a flipped bit names its record", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "a", {bytes_of("first"), bytes_of("second")});
  const std::string whole = read_text(directory / "a");
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(static_cast<unsigned char>(damaged[bit / 8]) ^ (1U << (bit % 8)));
    write_text(directory / "a", damaged);
    const std::string said = data_failure([&] {
      const RecordFile file(directory / "a");
      for (std::size_t record = 0; record < file.size(); ++record) file.read(record);
    });
    CHECK_THAT(said, ContainsSubstring(bit / 8 < 21 ? "record 0 (byte 0)" : "record 1 (byte 21)"));
  }
}

TEST_CASE("records: images of all shards are read in the order of their names", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "train-1", {image_record(2, 3)});
  write_records(directory / "train-0", {image_record(0, 1), image_record(1, 2)});
  write_records(directory / "test-0", {image_record(1, 4)});
  const auto examples = open(directory);
  REQUIRE(examples->size() == 3);
  for (std::int64_t example = 0; example < 3; ++example) {
    CHECK(examples->label(example) == example);
    CHECK(examples->read(example) == bytes_of(png(gradient(5, 4, 3, static_cast<int>(example) + 1))));
  }
  CHECK(examples->record(2) == (directory / "train-1").string() + ": record 0 (byte 0)");
}

TEST_CASE("records: labels may start at another number", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "train-0", {image_record(1, 1), image_record(3, 2)});
  CHECK(open(directory, 1)->label(1) == 2);
  CHECK_THAT(data_failure([&] { open(directory, 0); }),
             ContainsSubstring("record 1 (byte") && ContainsSubstring("label 3 is not in [0, 3)"));
  CHECK_THAT(data_failure([&] { open(directory, 2); }),
             ContainsSubstring("label 1 is not in [2, 5), as the job's 'first_label'"));
}

TEST_CASE("records: the error for a record without an image names shard and record", "[input]") {
  const TemporaryDirectory directory;
  CHECK_THAT(data_failure([&] { open(directory); }),
             ContainsSubstring("train-*: dataset is missing") && ContainsSubstring("--data-root"));
  write_records(directory / "train-0", {image_record(0, 1)});
  write_records(directory / "train-1", {});  // like a download that never began
  CHECK_THAT(data_failure([&] { open(directory); }),
             ContainsSubstring((directory / "train-1").string() + ": is empty; get the file again"));
  std::filesystem::remove(directory / "train-1");
  write_records(directory / "train-0", {image_record(0, 1), bytes_of("no message")});
  CHECK_THAT(data_failure([&] { open(directory); }),
             ContainsSubstring((directory / "train-0").string() + ": record 1") &&
                 ContainsSubstring("is no tf.train.Example"));
  write_records(directory / "train-0", {{}});
  CHECK_THAT(data_failure([&] { open(directory); }),
             ContainsSubstring("record 0 (byte 0): has no feature 'image/class/label'"));
}

TEST_CASE("records: damaged data stops the run or is skipped, as the job says", "[input]") {
  const TemporaryDirectory directory;
  write_records(directory / "train-0", {image_record(0, 1)});
  write_records(directory / "train-1", {image_record(1, 2), image_record(2, 3)});
  std::string file = read_text(directory / "train-1");
  file[40] = static_cast<char>(file[40] + 1);  // in the data of the first record
  write_text(directory / "train-1", file);
  const std::string record = (directory / "train-1").string() + ": record 0 (byte 0)";
  const std::string said = record + ": the checksum of its data is wrong";
  CHECK_THAT(data_failure([&] { open(directory)->read(1); }), Catch::Matchers::StartsWith(said));

  const auto examples = open(directory, 0, OnUnreadable::kSkip);
  REQUIRE(examples->size() == 3);
  CHECK(examples->label(0) == 0);
  CHECK_THAT(data_failure([&] { examples->read(1); }), Catch::Matchers::StartsWith(said));
  CHECK(examples->label(2) == 2);
  CHECK(examples->read(2) == bytes_of(png(gradient(5, 4, 3, 3))));

  write_records(directory / "train-1", {bytes_of("no message"), image_record(1, 2)});
  CHECK(open(directory, 0, OnUnreadable::kSkip)->label(2) == 1);
  write_records(directory / "train-1", {image_record(7, 2)});
  CHECK_THAT(data_failure([&] { open(directory, 0, OnUnreadable::kSkip); }),
             ContainsSubstring("label 7 is not in [0, 3)"));
}

TEST_CASE("records: for each damaged byte, the run stops at the record or continues without it", "[input]") {
  const TemporaryDirectory directory;
  const fs::path shard = directory / "train-0";
  write_records(shard, {image_record(1, 2), image_record(2, 3)});
  const std::string whole = read_text(shard);
  const std::size_t header = 12;
  const std::size_t end = header + image_record(1, 2).size();  // end of the first record's data
  for (std::size_t byte = header; byte < end; ++byte) {
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(~damaged[byte]);
    write_text(shard, damaged);
    CAPTURE(byte);
    CHECK_THAT(data_failure([&] { open(directory)->read(0); }), ContainsSubstring("record 0 (byte 0)"));
    const auto examples = open(directory, 0, OnUnreadable::kSkip);
    CHECK_THAT(data_failure([&] { examples->read(0); }), ContainsSubstring("record 0 (byte 0)"));
    CHECK(examples->label(1) == 2);
  }
}

TEST_CASE("records: opening a shard reads labels and no images", "[input]") {
  const TemporaryDirectory directory;
  const Bytes image(1 << 20, 7);
  std::vector<Bytes> records;
  for (const bool label_is_first : {true, false}) {
    tensorflow::Example label;
    tensorflow::Example file;
    add_feature(label, "image/class/label").mutable_int64_list()->add_value(2);
    add_feature(file, "image/encoded").mutable_bytes_list()->add_value(image.data(), image.size());
    // Concatenated messages are one message with the fields of both.
    const std::string data = label_is_first ? label.SerializeAsString() + file.SerializeAsString()
                                            : file.SerializeAsString() + label.SerializeAsString();
    records.push_back(bytes_of(data));
  }
  write_records(directory / "train-0", records);
  const std::uint64_t before = bytes_read();
  const auto examples = open(directory);
  CHECK(bytes_read() - before < 64 * 1024);
  for (std::int64_t example = 0; example < 2; ++example) {
    CHECK(examples->label(example) == 2);
    CHECK(examples->read(example) == image);
  }
  CHECK(bytes_read() - before > 2 * image.size());
}

TEST_CASE("records: the same image gives the same bytes", "[input]") {
  CHECK(image_record(2, 5) == image_record(2, 5));
  const ImageRecord record = dataflow::read_image_record(image_record(2, 5));
  CHECK(record.label == 2);
  CHECK(record.file == bytes_of(png(gradient(5, 4, 3, 5))));
}

TEST_CASE("records: the error for too many open files says what to do", "[input]") {
  if (tests::kSanitized) tests::skip_test("a sanitizer opens files itself to check the types of objects");
  const TemporaryDirectory directory;
  write_records(directory / "train-0", {image_record(1, 1)});
  struct Limit {
    rlimit before{};
    Limit() {
      getrlimit(RLIMIT_NOFILE, &before);
      const rlimit none{3, before.rlim_max};  // open files stay open
      setrlimit(RLIMIT_NOFILE, &none);
    }
    ~Limit() { setrlimit(RLIMIT_NOFILE, &before); }
  };
  const auto message = data_failure([&] {
    const Limit limit;
    RecordFile(directory / "train-0");
  });
  CHECK_THAT(message,
             ContainsSubstring("train-0: cannot be opened: Too many open files") && ContainsSubstring("ulimit -n"));
}

TEST_CASE("records: an image example has the bytes that TensorFlow writes", "[input]") {
  // Protobuf's wire format of a field: number and type, length, bytes. A map has one entry (1: name, 2: value) per
  // feature. A feature is a list of bytes (field 1) or of integers (field 3). The values of a list are its field 1.
  const auto field = [](char tag, const std::string& bytes) {
    return std::string{tag, static_cast<char>(bytes.size())} + bytes;
  };
  const auto entry = [&](const std::string& name, const std::string& feature) {
    return field('\x0a', field('\x0a', name) + field('\x12', feature));
  };
  const std::string features = entry("image/class/label", field('\x1a', field('\x0a', "\x02"))) +
                               entry("image/class/text", field('\x0a', field('\x0a', "cat"))) +
                               entry("image/encoded", field('\x0a', field('\x0a', "JPEG")));
  const Bytes written = dataflow::make_image_record({2, bytes_of("JPEG")}, "cat");
  CHECK(written == bytes_of(field('\x0a', features)));

  const std::string again = entry("image/class/label", field('\x1a', field('\x0a', "\x01")));
  const ImageRecord last = dataflow::read_image_record(bytes_of(field('\x0a', features + again)));
  CHECK(last.label == 1);
  CHECK(last.file == bytes_of("JPEG"));
}
