// Tests the installed tree like on another machine: it is moved, and the environment only says where CUDA's libraries
// are.
#include <cstdint>
#include <regex>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxBytes = 64'000'000;                // limit for the tree that a user copies
constexpr int kMaxGlibc = 34;                                   // the minor version of 2.34; Ubuntu 22.04 has 2.35
constexpr std::uintmax_t kMaxArchiveBytes = 48U * 1024 * 1024;  // limit for its archive with tests and benchmarks

class Tree {
 public:
  Tree() {
    const fs::path first = directory_ / "first";
    for (const char* component : {ARBALEST_COMPONENTS}) {
      const Completed done =
          Subprocess({ARBALEST_CMAKE, "--install", ARBALEST_BUILD, "--prefix", first, "--component", component}, {},
                     directory_.path())
              .wait();
      INFO(done.out << done.err);
      REQUIRE(done.exit_code == 0);
    }
    fs::rename(first, root());
  }

  fs::path root() const { return directory_ / "moved"; }

  Completed run(std::vector<std::string> arguments, std::vector<std::string> environment = {}) const {
    arguments.insert(arguments.begin(), root() / "bin/arbalest");
    environment.emplace_back("LD_LIBRARY_PATH=" ARBALEST_CUDA_DIRECTORIES);
    return Subprocess(arguments, environment, directory_.path()).wait();
  }

  // Returns the output of readelf for a file.
  Completed read_elf(const std::string& what, const fs::path& file) const {
    return Subprocess({ARBALEST_READELF, "--wide", what, file}, {}, directory_.path()).wait();
  }

  // The size of the tree as an archive, in which it travels.
  std::uintmax_t archive_bytes() const {
    const Completed done =
        Subprocess({ARBALEST_CMAKE, "-E", "tar", "czf", "tree.tar.gz", "moved"}, {}, directory_.path()).wait();
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    return fs::file_size(directory_ / "tree.tar.gz");
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(root())) {
      if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
    }
    return files;
  }

 private:
  TemporaryDirectory directory_;
};

bool is_library_of_the_machine(const std::string& name) {
  static const std::regex kNames(
      R"(linux-vdso\.so\.1|.*/ld-linux-x86-64\.so\.2|lib(c|dl|gcc_s|m|pthread|rt|stdc\+\+)\.so\.\d+|lib(cu|nccl|nv).*)");
  return std::regex_match(name, kNames);
}

}  // namespace

TEST_CASE("install: a moved tree runs") {
  const Tree tree;
  const Completed help = tree.run({"--help"});
  INFO(help.err);
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, ContainsSubstring("train"));

  const Completed env = tree.run({"env", "--json"});
  REQUIRE(env.exit_code == 0);
  CHECK(nlohmann::json::parse(env.out)["libraries"].contains("oneDNN"));

  const Completed train = tree.run({"train", tree.root() / "configs/logistic-digits.txtpb", "--set", "devices=cpu",
                                    "--set", "training.max_epochs=1", "--output", tree.root() / "run"});
  INFO(train.err);
  CHECK(train.exit_code == 0);
  CHECK(fs::exists(tree.root() / "run/model.safetensors"));
}

TEST_CASE("install: every library comes from the tree or belongs to the machine") {
  const Tree tree;
  const Completed loaded = tree.run({}, {"LD_TRACE_LOADED_OBJECTS=1"});  // like ldd
  INFO(loaded.out << loaded.err);
  REQUIRE(loaded.exit_code == 0);
  std::set<std::string> carried;
  std::istringstream lines(loaded.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow, path;
    words >> name >> arrow >> path;
    if (is_library_of_the_machine(name)) continue;
    CAPTURE(line);
    CHECK(fs::weakly_canonical(path).string().starts_with((tree.root() / "lib").string()));
    carried.insert(name.substr(0, name.find('.')));
  }
  for (const char* library : {"libdnnl", "libgomp", "libprotobuf", "libtbb"}) {
    CHECK(carried.contains(library));
  }
}

TEST_CASE("install: no file refers to the build directory or has symbols for debuggers") {
  const Tree tree;
  std::uintmax_t carried = 0;  // without tests and benchmarks
  int programs = 0;
  for (const fs::path& file : tree.files()) {
    CAPTURE(file);
    const std::string part = fs::relative(file, tree.root()).begin()->string();
    if (part != "tests" && part != "bench") carried += fs::file_size(file);
    const Completed dynamic = tree.read_elf("--dynamic", file);
    if (dynamic.exit_code != 0 || dynamic.out.empty()) continue;  // a job file
    static const std::regex kPath(R"((?:RPATH|RUNPATH)\)\s+Library \w+: \[(.*)\])");
    std::smatch match;
    if (std::regex_search(dynamic.out, match, kPath)) {
      CHECK(match[1] == "$ORIGIN/../lib");
      ++programs;
    }
    CHECK(tree.read_elf("--sections", file).out.find(".symtab") == std::string::npos);
  }
  CHECK(programs >= 1);
  CHECK(carried < kMaxBytes);
  CHECK(tree.archive_bytes() < kMaxArchiveBytes);
}

TEST_CASE("install: no file needs a newer glibc than the README says") {
  const Tree tree;
  int needs = 0;
  for (const fs::path& file : tree.files()) {
    const Completed versions = tree.read_elf("--version-info", file);
    if (versions.exit_code != 0) continue;  // a job file
    static const std::regex kVersion(R"(Name: GLIBC_2\.(\d+))");
    const std::string& text = versions.out;
    for (std::sregex_iterator match(text.begin(), text.end(), kVersion), none; match != none; ++match) {
      CAPTURE(file, match->str());
      CHECK(std::stoi((*match)[1]) <= kMaxGlibc);
      ++needs;
    }
  }
  CHECK(needs > 0);
}

}  // namespace arbalest::tests
