// TFRecord files: records of a length, its checksum, the data, and its checksum
// (https://www.tensorflow.org/tutorials/load_data/tfrecord). Uncompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

namespace arbalest::dataflow {

// A shard whose records are found by number. Immutable: any number of threads may read at once.
class RecordFile {
 public:
  // Walks over all lengths. Throws ErrorKind::kData, naming the shard and the record, if the file is unreadable,
  // empty or truncated, or a length has a wrong checksum.
  explicit RecordFile(std::filesystem::path path);
  ~RecordFile();
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::size_t size() const noexcept { return records_.size(); }
  // The data of a record. Throws ErrorKind::kData, naming both, if its checksum is wrong.
  std::vector<std::uint8_t> read(std::size_t record) const;
  // Of that data.
  std::uint64_t bytes(std::size_t record) const { return records_.at(record).bytes; }
  // As much of it from `offset` on as there is and `out` holds; how much that is. Its checksum is not looked at.
  std::size_t read_part(std::size_t record, std::uint64_t offset, std::span<std::uint8_t> out) const;
  // "shard: record 3 (byte 1234)"
  std::string describe(std::size_t record) const;

 private:
  struct Record {
    std::uint64_t offset = 0;  // of its data
    std::uint64_t bytes = 0;
  };

  void walk(std::uint64_t file_bytes);
  bool read_at(std::uint64_t offset, std::span<std::uint8_t> out) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::vector<Record> records_;
};

class RecordWriter {
 public:
  // Throws ErrorKind::kOutOfMemory if the file cannot be written.
  explicit RecordWriter(const std::filesystem::path& path);

  void write(std::span<const std::uint8_t> data);
  // Throws ErrorKind::kOutOfMemory unless all has been written.
  void close();

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace arbalest::dataflow
