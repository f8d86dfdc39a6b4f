// Tests the library as other programs get it: installed, in a tree that was moved.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/source_directory.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

// The library in a moved tree, and a copy of the consumer's project. Both lie outside the source and the build tree.
class Installed {
 public:
  Installed() {
    const fs::path first = directory_ / "first";
    require(run({ARBALEST_CMAKE, "--install", ARBALEST_BUILD, "--prefix", first, "--component", "development"}));
    fs::rename(first, root());
    fs::copy(source_directory() + "/tests/library/consumer", project(), fs::copy_options::recursive);
  }

  fs::path root() const { return directory_ / "moved"; }
  fs::path library() const { return root() / "lib/libarbalest.so"; }
  fs::path project() const { return directory_ / "project"; }
  fs::path operator/(const std::string& name) const { return directory_ / name; }

  // `libraries`: a directory in which the program's libraries are looked for. Linkers, too, look for CUDA's libraries.
  Completed run(const std::vector<std::string>& arguments, std::vector<std::string> environment = {},
                const std::string& libraries = "") const {
    environment.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin");
    environment.push_back("LD_LIBRARY_PATH=" + libraries + ":" ARBALEST_CUDA_DIRECTORIES);
    return Subprocess(arguments, environment, directory_.path()).wait();
  }

  static std::string require(const Completed& done) {
    INFO(done.out << done.err);
    REQUIRE(done.exit_code == 0);
    return done.out;
  }

  std::set<std::string> headers() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root() / "include")) {
      if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), root() / "include").generic_string());
    }
    return names;
  }

 private:
  TemporaryDirectory directory_;
};

// Runs the consumer's program and checks what it does.
void check_program(const Installed& installed, const fs::path& program, const std::string& libraries = "") {
  const Completed done = installed.run({program}, {}, libraries);
  INFO(done.out << done.err);
  CHECK(done.exit_code == 0);
  CHECK(done.err.empty());
  static const std::regex kOutput(
      "Arbalest " ARBALEST_VERSION
      "\n(epoch \\d: test accuracy 0\\.\\d\\d\n)+this is a 1 \\(\\d+ %\\)\n"
      "this is a 0 \\(\\d+ %\\)\n7840 weights\nexit code 3: job:1:15: error: [\\s\\S]*lenet[\\s\\S]*");
  CHECK(std::regex_match(done.out, kOutput));
  CHECK(fs::exists(installed / "runs/digits/model.safetensors"));
  fs::remove_all(installed / "runs");
}

}  // namespace

TEST_CASE("installed library: a project finds it with find_package, trains and predicts") {
  const Installed installed;
  const fs::path build = installed / "build";
  Installed::require(installed.run({ARBALEST_CMAKE, "-S", installed.project(), "-B", build, "-G", ARBALEST_GENERATOR,
                                    "-DCMAKE_MAKE_PROGRAM=" ARBALEST_MAKE_PROGRAM, "-DCMAKE_CXX_COMPILER=" ARBALEST_CXX,
                                    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror",
                                    "-DCMAKE_PREFIX_PATH=" + installed.root().string()}));
  Installed::require(installed.run({ARBALEST_CMAKE, "--build", build}));
  check_program(installed, build / "digits");
}

TEST_CASE("installed library: a compiler finds it with pkg-config") {
  const std::string pkg_config = ARBALEST_PKG_CONFIG;
  if (pkg_config.empty()) skip_test("pkg-config is not installed");
  const Installed installed;
  const std::string path = "PKG_CONFIG_PATH=" + (installed.root() / "lib/pkgconfig").string();
  CHECK(installed.run({pkg_config, "--modversion", "arbalest"}, {path}).out == ARBALEST_VERSION "\n");
  std::istringstream flags(Installed::require(installed.run({pkg_config, "--cflags", "--libs", "arbalest"}, {path})));
  std::vector<std::string> command{ARBALEST_CXX, "-std=c++20", installed.project() / "main.cc", "-o", "digits"};
  for (std::string flag; flags >> flag;) command.push_back(flag);
  Installed::require(installed.run(command));
  const Completed alone = installed.run({installed / "digits"});  // nobody has told it where the library is
  CHECK(alone.exit_code == 127);
  check_program(installed, installed / "digits", (installed.root() / "lib").string());
}

TEST_CASE("installed library: it exports the functions of its headers and nothing else") {
  const Installed installed;
  const std::string symbols = Installed::require(
      installed.run({ARBALEST_NM, "--dynamic", "--defined-only", "--demangle", installed.library()}));
  const std::vector<std::string> expected = {
      "arbalest::Error::Error",     "arbalest::Error::exit_code",     "arbalest::Error::kind",
      "arbalest::Error::operator=", "arbalest::Error::~Error",        "arbalest::Model::Model",
      "arbalest::Model::input",     "arbalest::Model::labels",        "arbalest::Model::operator=",
      "arbalest::Model::predict",   "arbalest::Model::predict_files", "arbalest::Model::warnings",
      "arbalest::Model::weights",   "arbalest::Model::~Model",        "arbalest::train",
      "arbalest::version",          "typeinfo for arbalest::Error",   "typeinfo name for arbalest::Error",
      "vtable for arbalest::Error"};
  std::set<std::string> found;
  std::istringstream lines(symbols);
  static const std::regex kSymbol(R"([0-9a-f]+ [A-Za-z] (.*?)(\[abi:cxx11\])?(\(.*)?@@ARBALEST_[\d.]+)");
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" A ARBALEST_") != std::string::npos) continue;  // the version itself
    std::smatch match;
    INFO(line);
    REQUIRE(std::regex_match(line, match, kSymbol));
    const std::string name = match[1];
    CHECK(std::ranges::count(expected, name) == 1);
    found.insert(name);
  }
  for (const char* needed : {"arbalest::Error::Error", "arbalest::Model::Model", "arbalest::Model::predict",
                             "arbalest::train", "arbalest::version", "typeinfo for arbalest::Error"}) {
    INFO(needed);
    CHECK(found.contains(needed));
  }
}

TEST_CASE("installed library: each public header compiles alone, and the documentation lists them all") {
  const Installed installed;
  const std::set<std::string> headers = installed.headers();
  for (const std::string& header : headers) {
    INFO(header);
    write_text(installed / "alone.cc", "#include <" + header + ">\n#include <" + header + ">\n");
    const Completed done = installed.run({ARBALEST_CXX, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                                          "-fsyntax-only", "-I", installed.root() / "include", "alone.cc"});
    INFO(done.err);
    CHECK(done.exit_code == 0);
  }
  const std::string page = read_text(source_directory() + "/docs/embedding.md");
  static const std::regex kRow(R"(\n\| `(arbalest/\w+\.h)` \|)");
  std::set<std::string> listed;
  for (std::sregex_iterator row(page.begin(), page.end(), kRow), none; row != none; ++row) listed.insert((*row)[1]);
  CHECK(listed == headers);
}

TEST_CASE("installed library: other versions than its own are refused") {
  const Installed installed;
  const std::string file = (installed.root() / "lib/cmake/Arbalest/ArbalestConfigVersion.cmake").string();
  const auto suits = [&](const std::string& major, const std::string& minor) {
    write_text(installed / "version.cmake", "set(PACKAGE_FIND_VERSION " + major + "." + minor +
                                                ")\nset(PACKAGE_FIND_VERSION_MAJOR " + major +
                                                ")\nset(PACKAGE_FIND_VERSION_MINOR " + minor + ")\ninclude(" + file +
                                                ")\nmessage(NOTICE \"${PACKAGE_VERSION_COMPATIBLE}\")\n");
    return Installed::require(installed.run({"/bin/sh", "-c", ARBALEST_CMAKE " -P version.cmake 2>&1"})) == "TRUE\n";
  };
  CHECK(suits("0", "1"));
  CHECK_FALSE(suits("0", "0"));
  CHECK_FALSE(suits("0", "2"));
  CHECK_FALSE(suits("1", "1"));
}

TEST_CASE("installed library: no file refers to the source or build directory") {
  const Installed installed;
  for (const auto& entry : fs::recursive_directory_iterator(installed.root())) {
    if (!entry.is_regular_file() || entry.is_symlink()) continue;
    const fs::path& file = entry.path();
    CAPTURE(file);
    const Completed dynamic = installed.run({ARBALEST_READELF, "--wide", "--dynamic", file});
    if (dynamic.exit_code != 0 || dynamic.out.empty()) {
      const std::string text = read_text(file);
      CHECK(text.find(source_directory()) == std::string::npos);
      CHECK(text.find(ARBALEST_BUILD) == std::string::npos);
      continue;
    }
    static const std::regex kPath(R"((?:RPATH|RUNPATH)\)\s+Library \w+: \[(.*)\])");
    std::smatch match;
    const bool has_path = std::regex_search(dynamic.out, match, kPath);
    if (has_path) CHECK(match[1] == "$ORIGIN");
    CHECK((has_path || file.filename() != fs::canonical(installed.library()).filename()));
  }
}

}  // namespace arbalest::tests
