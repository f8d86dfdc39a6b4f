#include "train/processes/shared_view.h"

#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/process/all_gather.h"
#include "messages/failure.h"
#include "saved_model/atomic_file.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::process::World;

namespace {

constexpr std::string_view kPrefix = ".view-";

// No name of such a file was ever looked up before, so no network file system answers from its memory.
std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns why it cannot be written; "" if it was.
std::string try_write(const fs::path& path, const std::string& text) {
  try {
    write_file(path, text);
    return "";
  } catch (const std::exception& error) {
    return as_error(error).what();
  }
}

// Removes these files, and those that a run which was killed has left.
void remove_all_of(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (!entry->path().filename().native().starts_with(kPrefix)) continue;
    std::error_code stays;
    fs::remove(entry->path(), stays);
  }
}

}  // namespace

SharedView look_at(World& world, const fs::path& directory) {
  SharedView view{.sees = std::vector<bool>(static_cast<std::size_t>(world.size()), false), .warning = {}};
  view.sees.front() = true;
  if (world.size() == 1) return view;
  const bool leads = world.rank() == 0;
  std::string token = random_token();
  if (leads) {
    remove_all_of(directory);
    if (!try_write(directory / fmt::format("{}{}", kPrefix, token), token).empty()) token.clear();
  }
  world.broadcast(token);
  if (token.empty()) return view;
  const std::string name = fmt::format("{}{}", kPrefix, token);
  const auto answer_file = [&](int rank) { return directory / fmt::format("{}-{}", name, rank); };
  const bool finds = leads || read(directory / name) == token;
  std::string problem;
  if (finds && !leads) problem = try_write(answer_file(world.rank()), token);
  const std::vector<std::string> found = world.gather(finds ? "yes" : "");
  const std::vector<std::string> problems = world.gather(problem);
  std::string sees(view.sees.size(), 'n');
  for (int rank = 0; rank < world.size() && leads; ++rank) {
    const auto place = static_cast<std::size_t>(rank);
    if (rank == 0 || read(answer_file(rank)) == token) {
      sees[place] = 'y';
    } else if (!found[place].empty() && view.warning.empty()) {
      view.warning = fmt::format(
          "{} sees the directory '{}', but {}; so it sends its learners to rank 0, which writes their checkpoints",
          world.place(rank), directory.string(),
          problems[place].empty() ? "rank 0 does not see what it writes there"
                                  : fmt::format("cannot write there: {}", problems[place]));
    }
  }
  world.broadcast(sees);
  for (std::size_t rank = 0; rank < sees.size(); ++rank) view.sees[rank] = sees[rank] == 'y';
  if (leads) remove_all_of(directory);
  return view;
}

}  // namespace arbalest::jobs
