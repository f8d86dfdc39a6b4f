#include "saved_model/safetensors.h"

#include <bit>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "engine/elementwise/bfloat16.h"
#include "saved_model/atomic_file.h"
#include "saved_model/half.h"
#include "saved_model/regular_file.h"
#include "saved_model/safetensors_header.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

using dataflow::NamedTensor;
using engine::ErrorKind;

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian numbers");

namespace {

constexpr std::size_t kSizeBytes = sizeof(std::uint64_t);

std::string header_text(std::span<const NamedTensor> tensors, const std::map<std::string, std::string>& metadata) {
  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    ARBALEST_CHECK(tensor.name != "__metadata__" && !header.contains(tensor.name));
    ARBALEST_CHECK(static_cast<std::int64_t>(tensor.values.size()) == tensor.shape.elements());
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end())},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kSizeBytes - 1) / kSizeBytes * kSizeBytes, ' ');  // aligns the tensors' data
  return text;
}

void check_hash(const std::string& found, const std::string& expected) {
  constexpr std::size_t kShown = 12;  // digits of a hash in a message
  if (expected.empty() || found == expected) return;
  engine::fail(ErrorKind::kCheckpoint,
               "it was changed after its run had saved it: its SHA-256 is {}..., the run's summary says {}...; restore "
               "the file, or train again",
               found.substr(0, kShown), expected.substr(0, kShown));
}

using Read = std::function<void(std::span<std::byte>)>;

struct Header {
  std::string text;
  std::vector<SafetensorsEntry> entries;
};

// Reads the header of a file of `file_bytes` bytes.
Header read_header(std::uint64_t file_bytes, const Read& read, SafetensorsTypes types) {
  if (file_bytes < kSizeBytes) {
    engine::fail(ErrorKind::kCheckpoint, "it has {} bytes, too few for a safetensors file", file_bytes);
  }
  std::uint64_t header_bytes = 0;
  read(std::as_writable_bytes(std::span(&header_bytes, 1)));
  if (header_bytes > kMaxSafetensorsHeaderBytes) {
    constexpr std::uint64_t kZipMask = 0xFFFFFFFF;
    constexpr std::uint64_t kZip = 0x04034B50;  // "PK\3\4"
    const bool is_zip = (header_bytes & kZipMask) == kZip;
    engine::fail(ErrorKind::kCheckpoint, "it claims a header of {} bytes; this is not a safetensors file{}",
                 header_bytes,
                 is_zip ? ", but perhaps one of torch.save: load it in PyTorch, and write its state_dict() with "
                          "safetensors.torch.save_file"
                        : "");
  }
  const std::uint64_t rest = file_bytes - kSizeBytes;
  if (header_bytes > rest) {
    engine::fail(ErrorKind::kCheckpoint, "it claims a header of {} bytes, but only {} follow", header_bytes, rest);
  }
  Header header{std::string(header_bytes, '\0'), {}};
  read(std::as_writable_bytes(std::span(header.text)));
  header.entries = parse_safetensors_header(header.text, rest - header_bytes, types);
  return header;
}

std::vector<NamedTensor> read_checked(const std::filesystem::path& path, const std::string& expected_sha256) {
  RegularFile file(path);
  Sha256 hash;
  std::vector<NamedTensor> tensors = parse_safetensors(file.size(), [&](std::span<std::byte> bytes) {
    file.read(bytes);
    hash.update(bytes);
  });
  check_hash(hash.finish(), expected_sha256);
  return tensors;
}

std::vector<float> to_floats(std::span<const std::uint16_t> halves, bool is_bfloat16) {
  std::vector<float> values(halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    values[i] = is_bfloat16 ? engine::elementwise::to_float(engine::BFloat16{halves[i]}) : from_half(halves[i]);
  }
  return values;
}

std::vector<StoredTensor> read_all(const std::filesystem::path& path) {
  RegularFile file(path);
  std::vector<StoredTensor> tensors;
  const auto read = [&](std::span<std::byte> bytes) { file.read(bytes); };
  for (SafetensorsEntry& entry : read_header(file.size(), read, SafetensorsTypes::kAll).entries) {
    const std::uint64_t bytes = entry.end - entry.begin;
    StoredTensor& stored = tensors.emplace_back(StoredTensor{{std::move(entry.name), entry.shape, {}}, entry.dtype});
    if (entry.dtype == "F32") {
      stored.tensor.values.resize(bytes / sizeof(float));
      file.read(std::as_writable_bytes(std::span(stored.tensor.values)));
    } else if (stored.has_values()) {
      std::vector<std::uint16_t> halves(bytes / sizeof(std::uint16_t));
      file.read(std::as_writable_bytes(std::span(halves)));
      stored.tensor.values = to_floats(halves, entry.dtype == "BF16");
    } else {
      std::vector<std::byte> unread(bytes);
      file.read(unread);
    }
  }
  return tensors;
}

std::map<std::string, std::string> read_metadata(const std::filesystem::path& path) {
  RegularFile file(path);
  const auto read = [&](std::span<std::byte> bytes) { file.read(bytes); };
  const Header header = read_header(file.size(), read, SafetensorsTypes::kAll);
  return nlohmann::json::parse(header.text).value("__metadata__", std::map<std::string, std::string>{});
}

}  // namespace

std::vector<NamedTensor> parse_safetensors(std::uint64_t file_bytes, const Read& read) {
  std::vector<NamedTensor> tensors;
  for (SafetensorsEntry& entry : read_header(file_bytes, read, SafetensorsTypes::kFloat32).entries) {
    std::vector<float> values((entry.end - entry.begin) / sizeof(float));
    read(std::as_writable_bytes(std::span(values)));
    tensors.push_back({std::move(entry.name), entry.shape, std::move(values)});
  }
  return tensors;
}

void put_safetensors(std::span<const NamedTensor> tensors, const std::map<std::string, std::string>& metadata,
                     const std::function<void(std::span<const std::byte>)>& write) {
  const std::string header = header_text(tensors, metadata);
  const std::uint64_t header_bytes = header.size();
  write(std::as_bytes(std::span(&header_bytes, 1)));
  write(std::as_bytes(std::span(header)));
  for (const NamedTensor& tensor : tensors) write(std::as_bytes(std::span(tensor.values)));
}

std::string write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              const std::map<std::string, std::string>& metadata) {
  AtomicFile file(path);
  Sha256 hash;
  put_safetensors(tensors, metadata, [&](std::span<const std::byte> bytes) {
    hash.update(bytes);
    file.write(bytes);
  });
  file.commit();
  return hash.finish();
}

namespace {

template <typename Read>
auto naming_file(const std::filesystem::path& path, const Read& read) {
  try {
    return read();
  } catch (const engine::Error& error) {
    throw engine::Error(error.kind(), fmt::format("cannot use the model '{}': {}", path.string(), error.what()));
  }
}

}  // namespace

std::vector<NamedTensor> read_safetensors(const std::filesystem::path& path, const std::string& expected_sha256) {
  return naming_file(path, [&] { return read_checked(path, expected_sha256); });
}

std::map<std::string, std::string> read_safetensors_metadata(const std::filesystem::path& path) {
  return naming_file(path, [&] { return read_metadata(path); });
}

std::vector<StoredTensor> read_stored_tensors(const std::filesystem::path& path) {
  return naming_file(path, [&] { return read_all(path); });
}

}  // namespace arbalest::jobs
