#include "dataflow/input/formats/image_files.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/ranges.h>

#include "dataflow/input/formats/image_names.h"
#include "dataflow/input/formats/input_file.h"
#include "dataflow/input/formats/text_lines.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace fs = std::filesystem;
using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 28;

// The images of a split by class name, before classes have numbers.
using FilesByClass = std::map<std::string, std::vector<fs::path>>;

// Systems and tools leave such entries in folders: ".DS_Store", "._0.jpg", ".ipynb_checkpoints".
bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool is_image_name(const fs::path& path) { return !is_hidden(path) && has_image_extension(path); }

// Sorted, so that the order does not depend on the file system.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  fs::directory_iterator iterator(folder, error);
  for (; !error && iterator != fs::directory_iterator(); iterator.increment(error)) entries.push_back(iterator->path());
  if (error) fail(ErrorKind::kData, "{}: cannot be listed: {}", folder.string(), error.message());
  std::ranges::sort(entries);
  return entries;
}

class Lister {
 public:
  Lister(const ImageFilesSource& source, std::vector<std::string>& warnings) : source_(source), warnings_(warnings) {}

  FilesByClass list(const std::string& split) {
    const fs::path path = source_.directory / split;
    return is_folder(path) ? list_tree(path) : read_list(path);
  }

  // Sorted.
  std::vector<std::string> class_names(const std::string& split) const {
    const fs::path path = source_.directory / split;
    std::vector<std::string> names;
    if (is_folder(path)) {
      for (const fs::path& folder : entries_of(path)) {
        if (fs::is_directory(folder) && !is_hidden(folder)) names.push_back(folder.filename().string());
      }
    } else {
      for (const auto& [name, files] : read_list(path)) names.push_back(name);
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  // False: a list.
  bool is_folder(const fs::path& path) const {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      fail(ErrorKind::kData, "{}: dataset is missing: neither a folder of classes nor a list of images is there; {}",
           path.string(), source_.if_missing);
    }
    return fs::is_directory(status);
  }

  FilesByClass list_tree(const fs::path& root) {
    FilesByClass files;
    LeftOutEntries others;
    for (const fs::path& folder : entries_of(root)) {
      if (!fs::is_directory(folder) || is_hidden(folder)) {
        others.add(folder);
        continue;
      }
      std::vector<fs::path>& images = files[folder.filename().string()];
      for (const fs::path& entry : entries_of(folder)) {
        if (is_image_name(entry)) {
          images.push_back(entry);
        } else {
          others.add(entry);
        }
      }
      if (images.empty()) {
        fail(ErrorKind::kData, "{}: the class has no image ({}); remove the folder or fill it", folder.string(),
             kImageExtensions);
      }
    }
    if (files.empty()) fail(ErrorKind::kData, "{}: holds no folder, so there is no class", root.string());
    if (others.count() > 0) {
      warnings_.push_back(fmt::format("{}: {} not named as images are left out ({}); the first: {}", root.string(),
                                      others.count() == 1 ? "1 entry" : fmt::format("{} entries", others.count()),
                                      others.kinds(), others.first().string()));
    }
    return files;
  }

  FilesByClass read_list(const fs::path& path) const {
    FilesByClass files;
    int number = 0;
    for (const std::string& line : read_text_lines(path)) {
      ++number;
      if (line.empty()) continue;
      if (line.find('\0') != std::string::npos) {  // what is before it may be another file
        fail(ErrorKind::kData, "{}:{}: holds a NUL; write one path per line", path.string(), number);
      }
      const fs::path image = fs::path(line).lexically_normal();
      const std::string folder = image.parent_path().filename().string();
      if (image.is_absolute() || folder.empty() || folder == ".." || *image.begin() == "..") {
        fail(ErrorKind::kData, "{}:{}: '{}' must be a path below {} that ends in CLASS/IMAGE", path.string(), number,
             line, source_.directory.string());
      }
      files[folder].push_back(source_.directory / image);
    }
    if (files.empty()) fail(ErrorKind::kData, "{}: lists no image", path.string());
    return files;
  }

  const ImageFilesSource& source_;
  std::vector<std::string>& warnings_;
};

class ImageFiles final : public EncodedExamples {
 public:
  explicit ImageFiles(std::vector<ImageFile> files) : files_(std::move(files)) {}

  std::int64_t size() const noexcept override { return std::ssize(files_); }
  std::int32_t label(std::int64_t example) const override { return file(example).label; }
  std::vector<std::uint8_t> read(std::int64_t example) const override { return read_whole_file(file(example).path); }
  std::string record(std::int64_t example) const override { return file(example).path.string(); }

 private:
  const ImageFile& file(std::int64_t example) const { return files_.at(static_cast<std::size_t>(example)); }

  std::vector<ImageFile> files_;
};

// Throws if an image of the validation set is also in `other`, the set that `name` lists.
void check_disjoint(const ImageFilesSource& source, const FilesByClass& other, const std::string& name,
                    const FilesByClass& validation) {
  std::set<fs::path> known;
  for (const auto& [folder, files] : other) {
    for (const fs::path& file : files) known.insert(file.lexically_normal());
  }
  for (const auto& [folder, files] : validation) {
    for (const fs::path& file : files) {
      if (!known.contains(file.lexically_normal())) continue;
      fail(ErrorKind::kData, "{}: {} is also in {}; the sets must not share images: list it in one of them only",
           (source.directory / source.validation).string(), file.string(), (source.directory / name).string());
    }
  }
}

void check_validation(const ImageFilesSource& source, const FilesByClass& training, const FilesByClass& validation) {
  const std::string path = (source.directory / source.validation).string();
  for (const auto& [name, files] : training) {
    const auto same = validation.find(name);
    if (same == validation.end()) {
      fail(ErrorKind::kData, "{}: there is no image of class '{}', which is one of the training set, {}; add some",
           path, name, (source.directory / source.train).string());
    }
  }
  check_disjoint(source, training, source.train, validation);
}

// Warns of classes that a test set lacks, so that its scores say nothing about them.
void warn_of_absent_classes(const fs::path& path, const FilesByClass& training, const FilesByClass& test,
                            std::vector<std::string>& warnings) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string> absent;
  for (const auto& [name, files] : training) {
    if (!test.contains(name)) absent.push_back(name);
  }
  if (absent.empty()) return;
  const std::size_t unnamed = absent.size() - std::min(absent.size(), kMostNamed);
  absent.resize(absent.size() - unnamed);
  warnings.push_back(
      fmt::format("{}: has no image of these classes of the training set, so scores leave them out: {}{}",
                  path.string(), fmt::join(absent, ", "), unnamed > 0 ? fmt::format(" and {} more", unnamed) : ""));
}

}  // namespace

ImageFileList list_image_files(const ImageFilesSource& source, Split split, std::vector<std::string>& warnings) {
  Lister lister(source, warnings);
  std::vector<std::string> of_training;  // reported when the training split itself is listed
  const FilesByClass training =
      split == Split::kTrain ? lister.list(source.train) : Lister(source, of_training).list(source.train);
  const std::string& name_of_wanted = split == Split::kTest ? source.test : source.validation;
  const FilesByClass wanted = split == Split::kTrain ? training : lister.list(name_of_wanted);
  if (split == Split::kValidation) {
    check_validation(source, training, wanted);
    std::vector<std::string> of_test;  // reported when the test split itself is listed
    check_disjoint(source, Lister(source, of_test).list(source.test), source.test, wanted);
  }
  if (split == Split::kTest) warn_of_absent_classes(source.directory / source.test, training, wanted, warnings);
  ImageFileList result;
  std::map<std::string, std::int32_t> labels;
  for (const auto& [name, files] : training) {
    labels[name] = static_cast<std::int32_t>(result.classes.size());
    result.classes.push_back(name);
  }
  for (const auto& [name, files] : wanted) {
    const auto label = labels.find(name);
    if (label == labels.end()) {
      fail(ErrorKind::kData, "{}: class '{}' is not among those of the training set, {}",
           (source.directory / name_of_wanted).string(), name, (source.directory / source.train).string());
    }
    for (const fs::path& file : files) result.files.push_back({file, label->second});
  }
  return result;
}

std::vector<std::string> image_class_names(const ImageFilesSource& source) {
  std::vector<std::string> warnings;  // reported when the images are listed
  return Lister(source, warnings).class_names(source.train);
}

std::unique_ptr<const EncodedExamples> open_image_files(const ImageFilesSource& source, Split split,
                                                        std::int64_t classes, std::vector<std::string>& warnings) {
  ImageFileList list = list_image_files(source, split, warnings);
  if (std::cmp_not_equal(list.classes.size(), classes)) {
    fail(ErrorKind::kData, "{}: has {} class folders ({}), but the job says classes: {}; correct one of them",
         (source.directory / source.train).string(), list.classes.size(), fmt::join(list.classes, ", "), classes);
  }
  return std::make_unique<ImageFiles>(std::move(list.files));
}

std::vector<std::uint8_t> read_whole_file(const fs::path& path) {
  InputFile file(path, true);
  if (file.most_left() > kMostFileBytes) {
    fail(ErrorKind::kData, "{}: is larger than {} bytes, the limit of an image file", path.string(), kMostFileBytes);
  }
  std::vector<std::uint8_t> bytes(file.most_left());
  file.read(bytes, "file");
  return bytes;
}

}  // namespace arbalest::dataflow
