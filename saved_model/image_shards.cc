#include "saved_model/image_shards.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <system_error>
#include <vector>

#include <fmt/ranges.h>

#include "dataflow/input/formats/image_records.h"
#include "dataflow/input/formats/records/record_file.h"
#include "dataflow/input/images/image_decoder.h"
#include "engine/base/error.h"
#include "engine/host/pool.h"
#include "engine/host/topology.h"
#include "messages/class_order.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using dataflow::ImageFile;
using dataflow::ImageFileList;
using dataflow::Split;
using engine::ErrorKind;
using engine::fail;

namespace {

std::vector<std::uint8_t> record_of(const ImageFile& file, const ImageFileList& list) {
  std::vector<std::uint8_t> bytes = dataflow::read_whole_file(file.path);
  try {
    dataflow::image_sides(bytes, {});
  } catch (const engine::Error& error) {
    fail(error.kind(), "{}: {}", file.path.string(), error.what());
  }
  return dataflow::make_image_record({file.label, std::move(bytes)},
                                     list.classes[static_cast<std::size_t>(file.label)]);
}

// Returns why the image cannot be decoded; "" if it can. Sets `damaged` to what is wrong with its orientation.
std::string problem_of(const fs::path& path, std::string& damaged) {
  try {
    const std::vector<std::uint8_t> bytes = dataflow::read_whole_file(path);
    damaged = dataflow::decode_whole_image(bytes, 3, {}).damaged_orientation;
  } catch (const engine::Error& error) {
    const std::string what = error.what();
    return what.starts_with(path.string()) ? what : fmt::format("{}: {}", path.string(), what);
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", path.string(), error.what());
  }
  return "";
}

bool is_stopped(const ImageShardsOptions& options) {
  return options.stop_signal != nullptr && options.stop_signal->load() != 0;
}

// Checks the images before anything is written, because a shard would hide which file an image came from.
void check_images(const std::vector<ImageFile>& files, const ImageShardsOptions& options,
                  std::vector<std::string>& warnings) {
  engine::host::Pool pool(engine::host::usable_cores());
  constexpr std::int64_t kMostNamed = 20;
  std::vector<std::string> problems(files.size());
  std::vector<std::string> damaged(files.size());
  pool.for_each(files.size(), [&](std::size_t i) {
    if (!is_stopped(options)) problems[i] = problem_of(files[i].path, damaged[i]);
  });
  const std::ptrdiff_t whole = std::ranges::count(damaged, "");
  if (whole < std::ssize(damaged)) {
    const auto first = std::ranges::find_if(damaged, [](const std::string& text) { return !text.empty(); });
    warnings.push_back(
        fmt::format("the EXIF orientation of {} is damaged, and readers will ignore it; the first: {}: {}",
                    counted(std::ssize(damaged) - whole, "image"),
                    files[static_cast<std::size_t>(first - damaged.begin())].path.string(), *first));
  }
  std::erase(problems, "");
  const std::int64_t bad = std::ssize(problems);
  if (bad == 0) return;
  const std::string rest = bad > kMostNamed ? fmt::format("\n... and {} more", grouped(bad - kMostNamed)) : "";
  problems.resize(static_cast<std::size_t>(std::min(bad, kMostNamed)));
  fail(ErrorKind::kData,
       "{} of {} cannot be read; repair or remove them, or convert them as they are with --no-verify\n{}{}",
       grouped(bad), counted(std::ssize(files), "image"), fmt::join(problems, "\n"), rest);
}

void write_split(const ImageFileList& list, const std::string& name, const fs::path& folder,
                 const ImageShardsOptions& options) {
  const std::int64_t per_shard = options.images_per_shard;
  const std::int64_t images = std::ssize(list.files);
  const std::int64_t shards = (images + per_shard - 1) / per_shard;
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    dataflow::RecordWriter writer(folder / fmt::format("{}-{:05}-of-{:05}", name, shard, shards));
    const std::int64_t end = std::min(images, (shard + 1) * per_shard);
    for (std::int64_t i = shard * per_shard; i < end; ++i) {
      if (is_stopped(options)) return;
      writer.write(record_of(list.files[static_cast<std::size_t>(i)], list));
    }
    writer.close();
  }
}

void write_classes(const std::vector<std::string>& classes, const fs::path& path) {
  std::string text;
  for (const std::string& name : classes) text += name + "\n";
  write_file(path, text);
}

// A new folder beside `output`. It is removed again unless it is renamed to `output`.
class PartialFolder {
 public:
  explicit PartialFolder(const fs::path& output) : path_(output.string() + ".partial-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) {
      const int error = errno;
      const bool is_full = kind_of_errno(error) == ErrorKind::kOutOfMemory;
      fail(is_full ? ErrorKind::kOutOfMemory : ErrorKind::kUsage, "{}: cannot be made: {}; choose another folder",
           output.string(), std::strerror(error));
    }
  }
  ~PartialFolder() {
    std::error_code error;  // ignored: the error before says more
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  fs::path path() const { return path_; }
  void rename(const fs::path& output) {
    std::error_code error;
    fs::permissions(path_,
                    fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec,
                    fs::perm_options::add, error);
    if (!error) fs::rename(path_, output, error);
    if (error) fail_write(output, error.value());
    path_.clear();
  }

 private:
  std::string path_;
};

std::vector<Split> splits_of(const dataflow::ImageFilesSource& source) {
  if (source.validation.empty()) return {Split::kTrain, Split::kTest};
  return {Split::kTrain, Split::kTest, Split::kValidation};
}

}  // namespace

ImageShardsReport write_image_shards(const ImageShardsOptions& options) {
  ImageShardsReport report;
  fs::path output = options.output;
  if (!output.has_filename()) output = output.parent_path();  // "records/" with a slash at the end
  std::error_code error;
  if (fs::exists(fs::symlink_status(output, error))) {
    fail(ErrorKind::kUsage, "{}: is there already; choose another folder, or remove it", output.string());
  }
  std::map<Split, ImageFileList> lists;
  for (const Split split : splits_of(options.source)) {
    lists[split] = dataflow::list_image_files(options.source, split, report.warnings);
  }
  const std::vector<std::string>& classes = lists[Split::kTrain].classes;
  const std::string warning =
      numbers_warning(classes, classes, true,
                      fmt::format("the folders of {}", (options.source.directory / options.source.train).string()));
  if (!warning.empty()) report.warnings.push_back(warning);
  if (options.verify) {
    std::vector<ImageFile> files;
    for (const auto& [split, list] : lists) files.insert(files.end(), list.files.begin(), list.files.end());
    check_images(files, options, report.warnings);
  }
  PartialFolder partial(output);
  for (const auto& [split, list] : lists) write_split(list, name_of(split), partial.path(), options);
  write_classes(classes, partial.path() / "classes.txt");
  report.is_stopped = is_stopped(options);
  if (report.is_stopped) return report;
  partial.rename(output);
  report.training_images = std::ssize(lists[Split::kTrain].files);
  report.validation_images = std::ssize(lists[Split::kValidation].files);
  report.test_images = std::ssize(lists[Split::kTest].files);
  report.classes = classes;
  return report;
}

}  // namespace arbalest::jobs
