// Writes a folder of images as TFRecord shards.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataflow/input/formats/image_files.h"

namespace arbalest::jobs {

struct ImageShardsOptions {
  dataflow::ImageFilesSource source;
  std::filesystem::path output;  // folder to create; its parent must exist
  std::int64_t images_per_shard = 1000;
  bool verify = true;                             // decode every image first
  const std::atomic<int>* stop_signal = nullptr;  // not 0: leave nothing behind and return
};

struct ImageShardsReport {
  std::int64_t training_images = 0;
  std::int64_t validation_images = 0;  // 0 if the source has no such set
  std::int64_t test_images = 0;
  std::vector<std::string> classes;
  std::vector<std::string> warnings;
  bool is_stopped = false;  // stopped by the signal; nothing is written
};

// Writes train-00000-of-00003 and so on, test-..., validation-... if the source names one, and classes.txt with one
// name per line. Image files are stored unchanged, after all have been decoded on all cores (`verify`) or only their
// headers read. The folder gets its name when it is complete. Throws ErrorKind::kUsage if it exists or cannot be
// created, kData for mistakes in the images, naming the first one that cannot be decoded, and as fail_write does if
// writing fails.
ImageShardsReport write_image_shards(const ImageShardsOptions& options);

}  // namespace arbalest::jobs
