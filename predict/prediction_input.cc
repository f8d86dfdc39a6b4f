#include "predict/prediction_input.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "dataflow/input/formats/image_files.h"
#include "dataflow/input/formats/image_names.h"
#include "dataflow/input/formats/input_file.h"
#include "dataflow/input/formats/text_lines.h"
#include "dataflow/input/images/encoded_images.h"
#include "engine/base/error.h"
#include "messages/nearest_path.h"
#include "messages/text.h"
#include "predict/prediction_array.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;
using Input = ModelDescription::Input;

namespace {

// Why a folder is no example; empty for what is no folder.
std::string folder_problem(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return "";
  static_cast<void>(fs::directory_iterator(path, error));
  return error ? fmt::format("cannot be listed: {}", error.message())
               : "is a folder; name it as an input to predict all images in it";
}

}  // namespace

void TolerantDataset::read(std::int64_t example, const dataflow::ExamplePosition& position,
                           std::span<const dataflow::InputTensor> features) const {
  try {
    if (has_files() && source(example).find('\0') != std::string::npos) {  // what is before it may be another file
      engine::fail(ErrorKind::kData, "holds a NUL; separate paths by line ends");
    }
    data_->read(example, position, features);
  } catch (const engine::Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    for (const dataflow::InputTensor& feature : features) std::ranges::fill(feature.bytes(), std::byte{0});
    const std::lock_guard lock(mutex_);
    std::string problem = has_files() ? folder_problem(source(example)) : "";
    errors_[example] = problem.empty() ? error.what() : std::move(problem);
  }
}

void TolerantDataset::read_label(std::int64_t /*example*/, const dataflow::InputTensor& label) const {
  std::ranges::fill(label.bytes(), std::byte{0});
}

std::string TolerantDataset::take_error(std::int64_t example) const {
  const std::lock_guard lock(mutex_);
  const auto error = errors_.extract(example);
  if (error.empty()) return "";
  const std::string prefix = source(example) + ": ";
  return error.mapped().starts_with(prefix) ? error.mapped().substr(prefix.size()) : error.mapped();
}

namespace {

// Files whose content is read one by one.
class NamedFiles final : public dataflow::EncodedExamples {
 public:
  explicit NamedFiles(std::vector<std::string> files) : files_(std::move(files)) {}

  std::int64_t size() const noexcept override { return std::ssize(files_); }
  std::int32_t label(std::int64_t /*example*/) const override { return 0; }
  std::vector<std::uint8_t> read(std::int64_t example) const override {
    return dataflow::read_whole_file(record(example));
  }
  std::string record(std::int64_t example) const override { return files_.at(static_cast<std::size_t>(example)); }

 private:
  std::vector<std::string> files_;
};

std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension;
}

// Whether a file's first bytes are those of an image or other binary data, and not of a list. Throws kData if the file
// is missing, special or unreadable.
bool is_binary(const fs::path& path) {
  dataflow::InputFile file(path, /*is_raw=*/true);
  std::array<std::uint8_t, 512> start{};
  const std::size_t bytes = file.read_up_to(start);
  const auto is_text = [](std::uint8_t byte) { return byte >= ' ' || byte == '\n' || byte == '\r' || byte == '\t'; };
  // JPEG begins with bytes that no UTF-8 text has, PNG holds control characters.
  return bytes > 0 && (start[0] == 0xFF || !std::all_of(start.begin(), start.begin() + bytes, is_text));
}

struct Found {
  std::vector<std::string> files;  // images, and paths that cannot be read: reading them says why
  std::vector<std::string> warnings;
};

struct LeftOut {
  dataflow::LeftOutEntries files;  // that no image is named like
  std::int64_t links = 0;          // to folders: they may form a loop
};

// Adds the images in the folder. Entries whose names begin with a dot are left out, with all below them. Returns why
// the folder cannot be listed.
std::error_code search(const fs::path& folder, std::vector<std::string>& files, LeftOut& left_out) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.')) continue;
    std::error_code unknown;  // an entry that is neither is counted as one that is no image
    if (entry->is_directory(unknown)) {
      if (entry->is_symlink(unknown)) {
        ++left_out.links;
      } else if (search(path, files, left_out)) {
        files.push_back(path.string());
      }
    } else if (dataflow::has_image_extension(path)) {
      files.push_back(path.string());
    } else {
      left_out.files.add(path);
    }
  }
  return error;
}

void add_folder(const fs::path& folder, Found& found) {
  std::vector<std::string> files;
  LeftOut left_out;
  if (const std::error_code error = search(folder, files, left_out)) {
    engine::fail(ErrorKind::kData, "{}: cannot be listed: {}", folder.string(), error.message());
  }
  if (files.empty()) {
    engine::fail(ErrorKind::kData, "{}: holds no image ({}); {}", folder.string(), dataflow::kImageExtensions,
                 left_out.links == 0 ? "check the path" : "name the folders to which its links lead");
  }
  std::ranges::sort(files);
  found.files.insert(found.files.end(), files.begin(), files.end());
  if (left_out.files.count() > 0) {
    found.warnings.push_back(fmt::format("{}: skipped {} without an image extension ({})", folder.string(),
                                         counted(left_out.files.count(), "file"), left_out.files.kinds()));
  }
  if (left_out.links > 0) {
    found.warnings.push_back(fmt::format("{}: skipped {} to folders; name those folders as inputs, too",
                                         folder.string(), counted(left_out.links, "link")));
  }
}

void add_list(const fs::path& path, Found& found) {
  const std::size_t before = found.files.size();
  for (const std::string& line : dataflow::read_text_lines(path)) {
    if (!line.empty()) found.files.push_back((path.parent_path() / line).string());
  }
  if (found.files.size() == before) {
    engine::fail(ErrorKind::kData, "{}: lists no image; a list has the path of one image per line", path.string());
  }
}

void check_is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    engine::fail(ErrorKind::kData, "'{}' cannot be read: {}{}", path.string(),
                 error ? error.message() : "it does not exist", nearest_path_hint(path));
  }
  if (fs::is_directory(status) || fs::is_regular_file(status)) return;
  engine::fail(ErrorKind::kData, "'{}' is neither a file nor a folder; give - for standard input", path.string());
}

enum class InputKind { kFolder, kArray, kImage, kList };

// Throws as is_binary().
InputKind kind_of(const fs::path& path) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  if (fs::is_directory(status)) return InputKind::kFolder;
  if (fs::is_regular_file(status) && extension_of(path) == ".npy") return InputKind::kArray;
  return dataflow::has_image_extension(path) || is_binary(path) ? InputKind::kImage : InputKind::kList;
}

// An unreadable input beside others counts as an image, because the attempt to read it then says why.
InputKind kind_beside_others(const fs::path& path) {
  try {
    return kind_of(path);
  } catch (const engine::Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    return InputKind::kImage;
  }
}

}  // namespace

dataflow::InputDescription input_of(const ModelDescription& description) {
  return description.input == Input::kIds ? dataflow::ratings_input(description.ids)
                                          : dataflow::image_input(description.shape, description.outputs);
}

PredictionInput open_files(const ModelDescription& description, std::vector<std::string> files) {
  const std::int64_t channels = description.shape[0];
  if (description.input != Input::kImage || (channels != 1 && channels != 3)) {
    engine::fail(ErrorKind::kUsage, "the model '{}' reads {}, no image files; give it an array (.npy)", description.job,
                 description.input == Input::kIds       ? "ids"
                 : description.input == Input::kNumbers ? "numbers"
                                                        : fmt::format("images of {} channels", channels));
  }
  // Unreadable images are skipped, so that errors do not name the option of a job that does so.
  auto images = std::make_unique<const dataflow::EncodedImages>(
      "images", input_of(description), description.normalization, std::make_unique<NamedFiles>(files),
      dataflow::Framing{.resize = description.resize, .random_crop = {}}, description.pixels,
      dataflow::OnUnreadable::kSkip);
  return {std::make_unique<const TolerantDataset>(std::move(images), std::move(files))};
}

PredictionInput open_inputs(const ModelDescription& description, const std::vector<std::string>& inputs) {
  const bool is_alone = inputs.size() == 1;
  if (is_alone) check_is_there(inputs.front());
  Found found;
  for (const fs::path path : inputs) {
    switch (is_alone ? kind_of(path) : kind_beside_others(path)) {
      case InputKind::kFolder: add_folder(path, found); break;
      case InputKind::kArray:
        if (is_alone) return {std::make_unique<TolerantDataset>(open_prediction_array(description, path))};
        engine::fail(ErrorKind::kUsage, "'{}' is an array, which must be the only input", path.string());
      case InputKind::kImage: found.files.push_back(path.string()); break;
      case InputKind::kList: add_list(path, found); break;
    }
  }
  PredictionInput input = open_files(description, std::move(found.files));
  input.warnings = std::move(found.warnings);
  return input;
}

}  // namespace arbalest::jobs
