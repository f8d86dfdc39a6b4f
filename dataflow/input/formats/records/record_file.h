// Reads and writes uncompressed TFRecord files. A record consists of a length, its checksum, the data, and its checksum
// (https://www.tensorflow.org/tutorials/load_data/tfrecord).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

namespace arbalest::dataflow {

// A shard with random access to its records. Immutable: any number of threads may read at once.
class RecordFile {
 public:
  // Reads all lengths. Throws ErrorKind::kData, naming the shard and the record, if the file is unreadable, empty or
  // truncated, or a length has a wrong checksum.
  explicit RecordFile(std::filesystem::path path);
  ~RecordFile();
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::size_t size() const noexcept { return records_.size(); }
  // The data of a record. Throws ErrorKind::kData, naming shard and record, if its checksum is wrong.
  std::vector<std::uint8_t> read(std::size_t record) const;
  // Size of the record's data.
  std::uint64_t bytes(std::size_t record) const { return records_.at(record).bytes; }
  // Reads the record's data from `offset` on until `out` is full or the data ends; returns the number of bytes read.
  // Does not verify the checksum.
  std::size_t read_part(std::size_t record, std::uint64_t offset, std::span<std::uint8_t> out) const;
  // "shard: record 3 (byte 1234)"
  std::string describe(std::size_t record) const;

 private:
  struct Record {
    std::uint64_t offset = 0;  // where the data begins
    std::uint64_t bytes = 0;
  };

  void walk(std::uint64_t file_bytes);
  bool read_at(std::uint64_t offset, std::span<std::uint8_t> out) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::vector<Record> records_;
};

// The bytes of a record with this data.
std::vector<std::uint8_t> record_of(std::span<const std::uint8_t> data);

class RecordWriter {
 public:
  // Throws ErrorKind::kOutOfMemory if the file cannot be written.
  explicit RecordWriter(const std::filesystem::path& path);

  void write(std::span<const std::uint8_t> data);
  // Throws ErrorKind::kOutOfMemory unless all data has been written.
  void close();

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace arbalest::dataflow
