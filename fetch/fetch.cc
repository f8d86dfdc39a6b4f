#include "fetch/fetch.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "fetch/http_transfer.h"
#include "fetch/partial_file.h"
#include "fetch/tar_archive.h"
#include "messages/failure.h"
#include "saved_model/atomic_file.h"
#include "saved_model/sha256.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;
namespace fs = std::filesystem;

namespace {

constexpr int kMostTries = 5;  // at one place

bool is_url(const std::string& text) { return text.starts_with("https://") || text.starts_with("http://"); }

void check_mirror(const std::string& from) {
  std::error_code error;
  if (from.empty() || is_url(from) || fs::is_directory(from, error)) return;
  fail(ErrorKind::kUsage, "--from: '{}' is no folder, and no URL that begins with https:// or http://",
       shown_url(from));
}

// Returns the folder, and those above it that were missing: the innermost first.
std::vector<fs::path> make_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> made = {folder};
  for (fs::path parent = folder.parent_path(); !parent.empty() && !fs::exists(parent, error);) {
    made.push_back(parent);
    parent = parent.parent_path();
  }
  fs::create_directories(folder, error);
  if (!error) return made;
  if (kind_of_errno(error.value()) == ErrorKind::kOutOfMemory) fail_write(folder, error.value());
  fail(ErrorKind::kUsage, "the folder '{}' cannot be made: {}; name another --data-root", folder.string(),
       error.message());
}

// The members of an archive, or the file itself.
std::vector<ArchiveMember> files_of(const Download& download) {
  if (!download.members.empty()) return download.members;
  return {{.path = "", .name = download.name, .bytes = download.bytes, .sha256 = download.sha256}};
}

// Whether the file is there. Throws kData if another file has its name.
bool is_there(const fs::path& path, const ArchiveMember& file) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  const bool has_length =
      fs::is_regular_file(path, error) && (file.bytes == 0 || fs::file_size(path, error) == file.bytes);
  std::string problem;
  if (!has_length) {
    problem = "its length differs";
  } else if (!file.sha256.empty() && sha256_of(path) != file.sha256) {
    problem = "its SHA-256 differs";
  } else if (file.problem) {
    problem = file.problem(path);
  }
  if (problem.empty()) return true;
  fail(ErrorKind::kData, "'{}' is not the published file: {}; move it away, and fetch again", path.string(), problem);
}

enum class Arrival { kWhole, kFailed, kStopped };

// Gets one file into its partial file.
class Fetching {
 public:
  Fetching(const Download& download, const FetchOptions& options, const std::string& folder, PartialFile& partial)
      : download_(download), options_(options), folder_(folder), partial_(partial) {}

  // Returns false if the fetching was stopped.
  bool run() {
    for (const std::string& place : places()) {
      switch (is_url(place) ? get_from(place) : copy_from(place)) {
        case Arrival::kWhole: return true;
        case Arrival::kStopped: return false;
        case Arrival::kFailed: break;
      }
    }
    const char* what_to_do = partial_.bytes() > 0    ? "the downloaded part is kept: fetch again to continue"
                             : options_.from.empty() ? "try again later, or name a mirror with --from"
                             : is_url(options_.from) ? "try again later, or name another mirror"
                                                     : "name another mirror";
    fail(ErrorKind::kData, "{} cannot be fetched: {}; {}", download_.name, fmt::join(problems_, "; "), what_to_do);
  }

 private:
  std::vector<std::string> places() const {
    return options_.from.empty() ? download_.folders : std::vector<std::string>{options_.from};
  }

  // Tries until the file is whole, or trying is of no use.
  Arrival get_from(const std::string& place) {
    const std::string url = fmt::format("{}{}{}", place, place.ends_with('/') ? "" : "/", download_.name);
    for (int tries = 1;; ++tries) {
      if (partial_.bytes() > download_.bytes) partial_.clear();
      const std::uint64_t before = partial_.bytes();
      HttpResult result = before == download_.bytes ? HttpResult{HttpOutcome::kWhole} : get_once(url);
      if (result.outcome == HttpOutcome::kStopped) return Arrival::kStopped;
      if (result.outcome == HttpOutcome::kNotResumable) partial_.clear();
      if (result.outcome == HttpOutcome::kWhole) {
        if (is_published()) return Arrival::kWhole;
        partial_.clear();
        result.problem = "its SHA-256 is not that of the published file";
        if (before == 0) result.outcome = HttpOutcome::kRefused;  // else the part that was there may be wrong
      }
      if (result.outcome == HttpOutcome::kRefused || tries == kMostTries) {
        problems_.push_back(fmt::format("{}: {}", shown_url(url), result.problem));
        return Arrival::kFailed;
      }
      if (result.problem.empty()) continue;
      if (options_.warn) options_.warn(fmt::format("{}: {}; trying again", shown_url(url), result.problem));
      if (!pause(tries)) return Arrival::kStopped;
    }
  }

  HttpResult get_once(const std::string& url) {
    return get({.url = url,
                .offset = partial_.bytes(),
                .bytes = download_.bytes,
                .put = [this](std::span<const std::byte> bytes) { put(bytes); },
                .stop = options_.stop});
  }

  Arrival copy_from(const fs::path& place) {
    std::error_code error;
    fs::path path = place / download_.name;
    if (!fs::exists(path, error)) path = place / folder_ / download_.name;
    if (!fs::exists(path, error)) {
      return failed(fmt::format("neither '{}' nor '{}' is there", (place / download_.name).string(), path.string()));
    }
    std::ifstream file;  // opening a pipe would wait
    if (fs::is_regular_file(path, error)) file.open(path, std::ios::binary);
    if (!file.is_open()) return failed(path.string() + " cannot be read");
    // A wrong file does not cost what has come before.
    if (fs::file_size(path, error) != download_.bytes || sha256_of(path) != download_.sha256) {
      return failed(path.string() + " is not the published file");
    }
    partial_.clear();
    std::vector<char> piece(1U << 20U);
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
      if (options_.stop && options_.stop()) return Arrival::kStopped;
      put(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(file.gcount()))));
      if (partial_.bytes() > download_.bytes) break;
    }
    if (is_published()) return Arrival::kWhole;
    partial_.clear();
    return failed(path.string() + " changes while it is copied");
  }

  Arrival failed(std::string problem) {
    problems_.push_back(std::move(problem));
    return Arrival::kFailed;
  }

  void put(std::span<const std::byte> bytes) {
    partial_.append(bytes);
    if (options_.progress) options_.progress({download_.name, partial_.bytes(), download_.bytes});
  }

  bool is_published() const { return partial_.bytes() == download_.bytes && partial_.sha256() == download_.sha256; }

  // Returns false if the fetching is stopped in the meantime.
  bool pause(int tries) const {
    constexpr std::chrono::milliseconds kStep{50};
    for (auto left = options_.pause * tries; left.count() > 0; left -= kStep) {
      if (options_.stop && options_.stop()) return false;
      std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(left, kStep));
    }
    return true;
  }

  const Download& download_;
  const FetchOptions& options_;
  const std::string& folder_;
  PartialFile& partial_;
  std::vector<std::string> problems_;
};

// An archive of images hardly shrinks: this is more than each of the known ones needs.
std::uint64_t most_unpacked_bytes(const Download& download) { return 4 * download.bytes + (std::uint64_t{1} << 20U); }

// A failure leaves neither an empty file nor an empty folder. `folders`: the innermost first.
void remove_if_empty(PartialFile& partial, const std::vector<fs::path>& folders) {
  if (partial.bytes() > 0) return;
  partial.remove();
  std::error_code is_used;
  for (const fs::path& folder : folders) fs::remove(folder, is_used);
}

// Returns false if the fetching was stopped.
bool fetch_one(const DatasetDownloads& dataset, const Download& download, const FetchOptions& options,
               FetchReport& report) {
  const fs::path folder = options.data_root / dataset.folder;
  std::vector<ArchiveMember> missing;
  for (const ArchiveMember& file : files_of(download)) {
    const fs::path path = folder / file.name;
    if (is_there(path, file)) {
      report.files.push_back({path, fs::file_size(path), /*was_there=*/true});
    } else {
      missing.push_back(file);
    }
  }
  if (missing.empty()) return true;
  const std::vector<fs::path> folders = make_folder(folder);
  PartialFile partial(folder / download.name);
  try {
    if (!Fetching(download, options, dataset.folder, partial).run()) {
      remove_if_empty(partial, folders);
      return false;
    }
  } catch (...) {
    remove_if_empty(partial, folders);
    throw;
  }
  if (download.members.empty()) {
    partial.move_to(folder / download.name);
  } else {
    unpack(partial.path(), missing, folder, most_unpacked_bytes(download));
    partial.remove();
  }
  for (const ArchiveMember& file : missing) {
    report.files.push_back({folder / file.name, fs::file_size(folder / file.name), /*was_there=*/false});
  }
  return true;
}

}  // namespace

FetchReport fetch(const DatasetDownloads& dataset, const FetchOptions& options) {
  check_mirror(options.from);
  FetchReport report;
  for (const Download& download : dataset.downloads) {
    if (!fetch_one(dataset, download, options, report)) {
      report.is_stopped = true;
      break;
    }
  }
  return report;
}

}  // namespace arbalest::jobs
