#include "train/data/class_names.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "dataflow/input/formats/image_files.h"
#include "dataflow/input/formats/input_file.h"
#include "dataflow/input/formats/text_lines.h"
#include "engine/base/error.h"
#include "messages/text_encoding.h"
#include "options/data/class_names_check.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

// Name of the file that lists the classes, one name a line; "" if the dataset has none.
std::string list_of(DataOptions::Kind kind) {
  switch (kind) {
    case DataOptions::Kind::kCifar10: return "batches.meta.txt";
    case DataOptions::Kind::kCifar100: return "fine_label_names.txt";
    case DataOptions::Kind::kTfrecord: return "classes.txt";
    default: return "";
  }
}

// The lines of a file without those that are empty.
std::vector<std::string> read_names(const fs::path& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;
  dataflow::InputFile file(path, /*is_raw=*/true);
  if (file.most_left() > kMostBytes) {
    engine::fail(ErrorKind::kData, "{}: is larger than {} bytes, the limit of a list of names", path.string(),
                 kMostBytes);
  }
  std::vector<std::uint8_t> bytes(file.most_left());
  file.read(bytes, "file");
  std::vector<std::string> names = dataflow::text_lines(std::string(bytes.begin(), bytes.end()));
  std::erase(names, "");
  return names;
}

std::vector<std::string> all_printable(std::vector<std::string> names) {
  std::ranges::transform(names, names.begin(), [](const std::string& name) { return printable(name); });
  return names;
}

std::vector<std::string> folder_names(const DataOptions& data, const fs::path& directory) {
  return all_printable(dataflow::image_class_names({.directory = directory, .train = data.train, .test = data.test}));
}

void check(const std::vector<std::string>& names, const DataOptions& data, const fs::path& path) {
  std::string problem = class_count_problem(names.size(), data.input.classes());
  const std::vector<NameProblem> others = class_name_problems(names);
  if (problem.empty() && !others.empty()) problem = others.front().text;
  if (problem.empty()) return;
  engine::fail(ErrorKind::kData, "{}: {}; correct it, or name the classes in the job (data.class_names)", path.string(),
               problem);
}

}  // namespace

fs::path class_names_path(const DataOptions& data, const std::string& data_root) {
  const fs::path directory = fs::path(data_root) / data.directory;
  if (data.kind == DataOptions::Kind::kImages || data.numbers.class_names) return directory / data.train;
  const std::string list = list_of(data.kind);
  return list.empty() ? fs::path() : directory / list;
}

std::vector<std::string> listed_class_names(const DataOptions& data, const std::string& data_root) {
  if (data.kind == DataOptions::Kind::kImages) return folder_names(data, fs::path(data_root) / data.directory);
  if (data.numbers.class_names) return all_printable(data.numbers.class_names(class_names_path(data, data_root)));
  std::error_code error;
  const fs::path path = class_names_path(data, data_root);
  return !path.empty() && fs::exists(path, error) ? read_names(path) : std::vector<std::string>();
}

std::vector<std::string> class_names_of_files(const DataOptions& data, const std::string& data_root) {
  std::vector<std::string> names = listed_class_names(data, data_root);
  const fs::path path = class_names_path(data, data_root);
  std::error_code error;
  const bool are_numbers = data.numbers.class_names && names.empty();
  if (!path.empty() && fs::exists(path, error) && !are_numbers) check(names, data, path);
  return names;
}

std::vector<std::string> class_names(const DataOptions& data, const std::string& data_root) {
  return data.class_names.empty() ? class_names_of_files(data, data_root) : data.class_names;
}

}  // namespace arbalest::jobs
