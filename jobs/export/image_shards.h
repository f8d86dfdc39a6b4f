// A folder of images as TFRecord shards.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "dataflow/input/image_files.h"

namespace arbalest::jobs {

struct ImageShardsOptions {
  dataflow::ImageFilesSource source;
  std::filesystem::path output;  // a folder that is made; its parent must be there
  std::int64_t images_per_shard = 1000;
  bool verify = true;                             // decode every image first
  const std::atomic<int>* stop_signal = nullptr;  // not 0: leave nothing behind and return
};

struct ImageShardsReport {
  std::int64_t training_images = 0;
  std::int64_t test_images = 0;
  std::vector<std::string> classes;
  std::vector<std::string> warnings;
  bool is_stopped = false;  // by the signal; nothing is written
};

// Writes train-00000-of-00003 and so on, test-..., and classes.txt, a name a line. The image files go in as they are,
// after they have been decoded on all cores, or after a look at their headers. The folder appears under its name when
// it is complete. Throws ErrorKind::kUsage if it is there already or cannot be made, kData for what is wrong with the
// images, naming the first of those that cannot be decoded, and as fail_write does where it cannot be written.
ImageShardsReport write_image_shards(const ImageShardsOptions& options);

}  // namespace arbalest::jobs
