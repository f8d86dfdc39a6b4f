// Writes small datasets of each kind, and compares their examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/dataset.h"
#include "dataflow/input/example.h"
#include "tests/support/idx_writer.h"
#include "tests/support/image_writer.h"
#include "tests/support/npy_writer.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {

inline constexpr int kImages = 60;  // of a split, in three classes

// A job that trains on `data` for one epoch.
inline std::string job_text(const std::string& data) {
  const bool are_numbers = data.find("ratings") != std::string::npos;
  return fmt::format(
      "name: 'divided' model {{ zoo {{ {} }} }}\ndata {{ {} }}\n"
      "training {{ batch_size: 4 max_epochs: 1 }} learning_rate {{ base: 0.01 }} devices: 'cpu'\n"
      "learners {{ per_device {{ fixed: 1 }} }}",
      are_numbers ? "matrix_factorization { width: 2 }" : "logistic_regression {}", data);
}

// Folders "class0" to "class2" of PNG files. Another seed makes other images.
inline void write_folder(const std::filesystem::path& folder, int count = kImages, int seed = 0) {
  for (int i = 0; i < count; ++i) {
    const std::filesystem::path path = folder / fmt::format("class{}/{:02}.png", i % 3, i);
    std::filesystem::create_directories(path.parent_path());
    write_text(path, png(gradient(12, 10, 3, i + seed)));
  }
}

inline void write_folders(const std::filesystem::path& directory) {
  for (const char* split : {"train", "test"}) write_folder(directory / split);
}

// "<split>_images.npy" [count, 1, 4, 5] and "<split>_labels.npy" in three classes.
inline void write_array(const std::filesystem::path& directory, const std::string& split, bool floats,
                        int count = kImages, int seed = 0) {
  std::filesystem::create_directories(directory);
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < count; ++i) {
    labels.push_back(i % 3);
    for (int p = 0; p < 20; ++p) pixels.push_back(static_cast<std::uint8_t>(4 * i + p + seed));
  }
  const std::string shape = fmt::format("{}, 1, 4, 5", count);
  write_text(directory / (split + "_images.npy"),
             floats ? npy("<f4", shape, bytes_of(std::vector<float>(pixels.begin(), pixels.end())))
                    : npy("|u1", shape, bytes_of(pixels)));
  write_text(directory / (split + "_labels.npy"), npy("<i4", fmt::format("{},", count), bytes_of(labels)));
}

inline void write_arrays(const std::filesystem::path& directory, bool floats, int count = kImages) {
  for (const char* split : {"train", "test"}) write_array(directory, split, floats, count);
}

// 30 records of CIFAR-10 in ten classes.
inline std::string cifar_records(int seed) {
  std::string records;
  for (int i = 0; i < 30; ++i) {
    records += static_cast<char>(i % 10);
    for (int p = 0; p < 3072; ++p) records += static_cast<char>((i + p + seed) % 251);
  }
  return records;
}

inline void write_cifar(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    write_text(directory / (std::string(name) + ".bin"), cifar_records(name[11]));
  }
}

// The four original files with 200 images in ten classes.
inline void write_mnist(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  for (const char* split : {"train", "t10k"}) {
    write_text(directory / fmt::format("{}-images-idx3-ubyte", split), idx_images(200, 28, 28));
    write_text(directory / fmt::format("{}-labels-idx1-ubyte", split), idx_labels(200));
  }
}

// The bits of an example as the model reads it, and of its label.
using Bits = std::vector<std::uint32_t>;

inline Bits bits_of(const dataflow::Dataset& data, std::int64_t example) {
  const dataflow::Example read(data.description());
  data.read(example, {.batch = 3, .row = 1}, read.features());
  data.read_label(example, read.label());
  Bits bits;
  for (const dataflow::InputTensor& tensor : read.tensors()) {
    const std::span<const std::byte> bytes = tensor.bytes();
    const std::size_t begin = bits.size();
    bits.resize(begin + bytes.size() / sizeof(bits[0]));
    std::memcpy(bits.data() + begin, bytes.data(), bytes.size());
  }
  return bits;
}

// Whether both have the same examples in the same order.
inline bool are_equal(const dataflow::Dataset& a, const dataflow::Dataset& b) {
  if (a.size() != b.size()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    if (bits_of(a, i) != bits_of(b, i)) return false;
  }
  return true;
}

}  // namespace arbalest::tests
