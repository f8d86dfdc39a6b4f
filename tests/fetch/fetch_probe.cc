// Fetches a made-up dataset, which a JSON file describes: fetch_probe DATASET.json DATA_ROOT [FROM]. Prints a line of
// JSON for each file. Exits as `arbalest data fetch` does.
#include <cstdio>
#include <fstream>
#include <iostream>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "fetch/fetch.h"
#include "messages/exit_codes.h"

namespace {

using nlohmann::json;
using namespace arbalest;

jobs::DatasetDownloads read_dataset(const char* path) {
  std::ifstream file(path);
  const json text = json::parse(file);
  jobs::DatasetDownloads dataset{text["name"], text["folder"], {}};
  for (const json& download : text["downloads"]) {
    jobs::Download made{download["name"], download["bytes"], download["sha256"], download["folders"], {}};
    for (const json& member : download["members"]) {
      made.members.push_back({member["path"], member["name"], member["bytes"], member["sha256"], {}});
    }
    dataset.downloads.push_back(made);
  }
  return dataset;
}

int exit_code(engine::ErrorKind kind) {
  using namespace jobs::exit_codes;
  if (kind == engine::ErrorKind::kUsage) return kUsageError;
  if (kind == engine::ErrorKind::kData) return kDataMissing;
  return kind == engine::ErrorKind::kOutOfMemory ? kOutOfMemory : kInternalError;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return jobs::exit_codes::kUsageError;
  jobs::FetchOptions options;
  options.data_root = arguments[2];
  options.from = count > 3 ? arguments[3] : "";
  options.warn = [](const std::string& text) { std::cerr << "warning: " << text << "\n"; };
  options.pause = std::chrono::milliseconds(1);
  try {
    for (const jobs::FetchedFile& file : jobs::fetch(read_dataset(arguments[1]), options).files) {
      std::cout << json{{"path", file.path.string()}, {"bytes", file.bytes}, {"was_there", file.was_there}} << "\n";
    }
  } catch (const engine::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return exit_code(error.kind());
  }
  return 0;
}
