#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "tests/architecture/folder_graph.h"
#include "tests/architecture/source_rules.h"
#include "tests/architecture/source_text.h"
#include "tests/support/catch.h"
#include "tests/support/source_directory.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

bool is_source(const fs::path& path) {
  static const std::set<std::string> kEndings = {".h", ".cc", ".cu", ".cuh", ".cpp", ".hpp", ".cxx", ".c"};
  return kEndings.contains(path.extension().string());
}

// Lists all files, except in hidden folders and in CMake's build folders.
std::vector<fs::path> source_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry->is_directory()) {
      const bool skip = entry->path().filename().string().starts_with('.') || entry->path() == root / "build" ||
                        fs::exists(entry->path() / "CMakeCache.txt");
      if (skip) entry.disable_recursion_pending();
    } else if (is_source(entry->path())) {
      files.push_back(entry->path());
    }
  }
  return files;
}

constexpr int kMostFiles = 30;

// Counts the source files directly in each folder outside tests/.
std::map<std::string, int> files_by_folder(const fs::path& root) {
  std::map<std::string, int> files;
  for (const fs::path& file : source_files(root)) {
    const std::string folder = fs::relative(file.parent_path(), root).generic_string();
    if (!folder.starts_with("tests")) ++files[folder];
  }
  return files;
}

struct Example {
  const char* path;
  const char* text;
  const char* reason;  // part of the message; nullptr: the text follows the rules
};

void check(const Example& example) {
  INFO(example.path << ": " << example.text);
  const std::vector<Violation> violations = check_source(example.path, example.text);
  if (example.reason == nullptr) {
    CHECK(describe(violations).empty());
  } else {
    REQUIRE(violations.size() == 1);
    CHECK_THAT(describe(violations), ContainsSubstring(example.reason));
  }
}

}  // namespace

TEST_CASE("architecture: the source tree follows the rules") {
  const fs::path root = tests::source_directory();
  std::vector<Violation> violations;
  std::set<std::string> folders;
  FolderGraph graph;
  for (const fs::path& file : source_files(root)) {
    const std::string path = fs::relative(file, root).generic_string();
    folders.insert(path.substr(0, path.find('/')));
    const std::string text = read_text(file);
    const std::vector<Violation> found = check_source(path, text);
    if (!path.starts_with("tests/") && !path.starts_with("bench/")) graph.add(path, text);
    violations.insert(violations.end(), found.begin(), found.end());
  }
  CHECK(describe(violations) == "");
  CHECK(graph.circle() == std::vector<std::string>{});
  for (const auto& [folder, files] : files_by_folder(root)) {
    INFO(folder << " holds " << files << " source files; sort them into subfolders");
    CHECK(files <= kMostFiles);
  }
  for (const char* folder :
       {"engine", "dataflow", "learners", "sma", "autotuner", "scheduler", "train", "cli", "tests"}) {
    CHECK(folders.contains(folder));  // the tree was found
  }
}

TEST_CASE("architecture: includes may only follow the arrows") {
  for (const Example& example : std::vector<Example>{
           {"scheduler/a.cc", "#include \"learners/b.h\"\n#include \"engine/c.h\"\n", nullptr},
           {"train/a.cc", "#include \"autotuner/b.h\"\n", nullptr},
           {"tests/sma/a.cc", "#include \"train/b.h\"\n#include \"bench/c.h\"\n", nullptr},
           {"engine/a.cc", "#include \"dataflow/b.h\"\n", "engine may not know dataflow"},
           {"engine/a.cc", "  #  include \"dataflow/b.h\"  // why\n", "engine may not know dataflow"},
           {"sma/a.cc", "#include \"learners/b.h\"\n", "sma may not know learners"},
           {"learners/a.cc", "#include \"sma/b.h\"\n", "learners may not know sma"},
           {"autotuner/a.cc", "#include \"engine/base/error.h\"\n", "autotuner may not know engine"},
           {"train/a.cc", "#include \"cli/b.h\"\n", "train may not know cli"},
           {"scheduler/a.cc", "#include \"autotuner/b.h\"\n", "scheduler may not know autotuner"},
           {"train/a.cc", "#include \"tests/support/b.h\"\n", "not one of our folders"},
           {"report/a.cc", "#include \"train/b.h\"\n", nullptr},
           {"train/a.cc", "#include \"report/b.h\"\n", "train may not know report"},
           {"train/a.cc", "#include \"checkpoint/b.h\"\n", nullptr},
           {"checkpoint/a.cc", "#include \"train/b.h\"\n", "checkpoint may not know train"},
           {"jobs/a.cc", "", "in no folder of the design"},
           {"engine/cpu/a.cc", "#include \"conv2d.h\"\n", "not one of our folders"},
           {"engine/backends/devices.cc", "#include \"engine/cpu/device/device.h\"\n", nullptr},
           {"learners/a.cc", "#include \"engine/cpu/device/device.h\"\n", "only engine knows its backends"},
           {"engine/process/a.cc", "#include \"engine/base/error.h\"\n#include \"engine/process/b.h\"\n", nullptr},
           {"engine/process/a.cc", "#include \"engine/stream.h\"\n", "engine/process knows only the engine's errors"},
           {"utilities/a.h", "", "in no folder of the design"},
           {"api/a.cc", "#include \"arbalest/error.h\"\n#include \"report/b.h\"\n", nullptr},
           {"predict/a.cc", "#include \"api/b.h\"\n", "predict may not know api"},
           {"cli/a.cc", "#include \"arbalest/error.h\"\n", "the public headers are for other programs"},
           {"api/arbalest/a.h", "#include <vector>\n#include \"arbalest/error.h\"\n", nullptr},
           {"api/arbalest/a.h", "#include \"engine/base/error.h\"\n", "only the standard library and public"},
           {"api/arbalest/a.h", "#include <fmt/format.h>\n", "only the standard library and public"},
           {"engine/a.cc", "// #include \"jobs/b.h\"\n/*\n#include \"jobs/c.h\"\n*/\n", nullptr},
       }) {
    check(example);
  }
}

TEST_CASE("architecture: vendor headers and the schema are included in their folders only") {
  for (const Example& example : std::vector<Example>{
           {"engine/cpu/a.cc", "#include <dnnl.hpp>\n#include <oneapi/dnnl/dnnl_types.h>\n#include <omp.h>\n", nullptr},
           {"engine/host/a.cc", "#include <tbb/task_group.h>\n#include <oneapi/tbb/version.h>\n", nullptr},
           {"bench/a.cc", "#include <dnnl.hpp>\n", nullptr},
           {"engine/a.cc", "#include <dnnl.hpp>\n", "belongs to engine/cpu"},
           {"engine/host/a.cc", "#include <omp.h>\n", "belongs to engine/cpu"},
           {"engine/cpu/a.cc", "#include <tbb/tbb.h>\n", "belongs to engine/host"},
           {"dataflow/input/a.cc", "#include <oneapi/tbb.h>\n", "belongs to engine/host"},
           {"engine/cpu/a.cc", "#include \"cuda_runtime.h\"\n", "belongs to engine/cuda"},
           {"engine/a.cc", "#include <nccl.h>\n", "belongs to engine/cuda"},
           {"engine/process/mpi/a.cc", "#include <mpi.h>\n", nullptr},
           {"sma/a.cc", "#include <mpi.h>\n", "belongs to engine/process/mpi"},
           {"engine/process/a.cc", "#include <mpi.h>\n", "belongs to engine/process/mpi"},
           {"options/text/a.cc", "#include <google/protobuf/text_format.h>\n", nullptr},
           {"options/readers/a.cc", "#include <google/protobuf/text_format.h>\n", "belongs to options/text"},
           {"dataflow/input/images/a.cc", "#include <png.h>\n", nullptr},
           {"dataflow/input/images/a.cc", "#include <webp/decode.h>\n", nullptr},
           {"dataflow/input/formats/a.cc", "#include <webp/decode.h>\n", "belongs to dataflow/input/images"},
           {"dataflow/input/formats/a.cc", "#include <png.h>\n", "belongs to dataflow/input/images"},
           {"train/learners/a.cc", "#include <google/protobuf/text_format.h>\n", "belongs to options"},
           {"train/learners/a.cc", "#include \"report/b.h\"\n", "train may not know report"},
           {"checkpoint/a.cc", "#include <xxhash.h>\n", nullptr},
           {"train/a.cc", "#include <xxhash.h>\n", "belongs to checkpoint"},
           {"scheduler/a.cc", "#include <google/protobuf/message.h>\n", "protobuf belongs to"},
           {"dataflow/models/a.cc", "#include \"arbalest/v1/model.pb.h\"\n", nullptr},
           {"dataflow/a.cc", "#include \"arbalest/v1/model.pb.h\"\n", "belongs to dataflow/models"},
           {"dataflow/models/a.cc", "#include \"arbalest/v1/job.pb.h\"\n", "belongs to api, checkpoint"},
           {"learners/a.cc", "#include \"arbalest/v1/job.pb.h\"\n", "belongs to api, checkpoint"},
       }) {
    check(example);
  }
}

TEST_CASE("architecture: conditionals on CUDA, the environment, thread-locals and singletons are found") {
  for (const Example& example : std::vector<Example>{
           {"engine/cuda/a.h", "#if defined(CUDA)\n#endif\n", nullptr},
           {"engine/elementwise/portable.h", "#ifdef __CUDACC__\n#endif\n", nullptr},
           {"engine/a.h", "#ifdef __CUDACC__\n#endif\n", "conditional on CUDA"},
           {"tests/a.cc", "# if ARBALEST_CUDA\n#endif\n", "conditional on CUDA"},
           {"engine/a.cc", "auto x = std::getenv(\"A\");\n", "reads the environment"},
           {"cli/a.cc", "auto x = std::getenv(\"A\");\n", nullptr},
           {"tests/a.cc", "auto x = std::getenv(\"A\");\n", nullptr},
           {"engine/a.cc", "// getenv\nauto x = \"getenv thread_local static int a;\";\n", nullptr},
           {"engine/a.cc", "auto x = R\"(\nstatic int a; \" )\";\n", nullptr},
           {"engine/a.cc", "thread_local int x;\n", "thread_local"},
           {"engine/a.cc", "  static int count = 0;\n", "static variable"},
           {"engine/a.cc", "  static std::map<int, int> cache;\n", "static variable"},
           {"engine/a.cc", "  static Pool pool{4};\n", "static variable"},
           {"engine/a.h", "  static Pool* pool_;\n", "static variable"},
           {"engine/a.cc", "  static int table[3];\n", "static variable"},
           {"engine/a.cc", "Pool& p = Pool::instance();\n", "singleton"},
           {"engine/a.cc", "Pool& p = Pool::getInstance();\n", "singleton"},
           {"engine/a.h", "  static constexpr int kMax = 3;\n  static const char* const kName;\n", nullptr},
           {"engine/a.h", "  static Graph build(const Input& input, int n = 3);\n", nullptr},
           {"engine/a.cc", "static_assert(sizeof(int) == 4);\nauto x = static_cast<int>(1'000);\n", nullptr},
       }) {
    check(example);
  }
}

TEST_CASE("architecture: folders that include each other are found") {
  FolderGraph graph;
  graph.add("a/x.cc", "#include \"a/y.h\"\n#include \"a/b/x.h\"\n// #include \"c/d/x.h\"\n#include <a/e.h>\n");
  graph.add("a/b/x.h", "#include \"c/x.h\"\n");
  graph.add("c/x.h", "#include \"c/d/x.h\"\n");
  CHECK(graph.circle().empty());
  graph.add("c/d/x.h", "#include \"a/b/y.h\"\n");
  CHECK(graph.circle() == std::vector<std::string>{"a/b", "c", "c/d"});
  FolderGraph child;
  child.add("a/x.cc", "#include \"a/b/x.h\"\n");
  child.add("a/b/x.h", "#include \"a/y.h\"\n");
  CHECK(child.circle() == std::vector<std::string>{"a", "a/b"});
}

TEST_CASE("architecture: long functions are found") {
  const auto body = [](int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += "  f();\n";
    return text;
  };
  for (const std::string head :
       {"void a() {\n", "int A::b(int c) const {\n", "auto a() -> int {\n", "A::A(int b) : b_(b), c_(2) {\n",
        "namespace x {\ntemplate <int n>\nvoid a(const B<n>& b) noexcept {\n"}) {
    INFO(head);
    CHECK(check_source("engine/a.cc", head + body(58) + "}\n").empty());
    CHECK_THAT(describe(check_source("engine/a.cc", head + body(59) + "}\n")), ContainsSubstring("of 61 lines"));
    CHECK(check_source("tests/a.cc", head + body(59) + "}\n").empty());
  }
  for (const std::string head : {"namespace a {\n", "const auto f = [&](int a) {\n"}) {
    INFO(head);
    CHECK(check_source("engine/a.cc", head + body(99) + "}\n").empty());
  }
}

TEST_CASE("architecture: classes of many member functions are found") {
  const auto of = [](int functions) {
    std::string text =
        "class A final : public B<int> {\n public:\n  A() = delete;\n  std::function<void(int)> f_ = g();\n";
    for (int i = 1; i < functions; ++i) text += "  int f(int a = 1) const { return g({a}); }\n";
    return text + " private:\n  struct C { void f(); };\n  void last();\n};\n";
  };
  CHECK(check_source("engine/a.h", of(40)).empty());
  CHECK_THAT(describe(check_source("engine/a.h", of(41))), ContainsSubstring("A has 41 member functions"));
}

TEST_CASE("architecture: only listed files wait for a device") {
  for (const std::string text :
       {"#include \"engine/waiting.h\"\n", "#include \"engine/host/completions.h\"\n", "  event.synchronize();\n",
        "  collective_.wait(event);\n", "  learner->stream().drain();\n", "  stream_->drain();\n"}) {
    CHECK_THAT(describe(check_source("learners/a.cc", text)), ContainsSubstring("waits for a device"));
    CHECK(check_source("engine/cpu/a.cc", text).empty());
  }
  CHECK(check_source("learners/learner.cc", "#include \"engine/waiting.h\"\n").empty());
}

TEST_CASE("architecture: only schemes, jobs and the choice of a round ask how replicas are coupled") {
  const std::string text = "if (m == sma::SynchronizationMode::kPull) return;\n";
  CHECK(check_source("sma/a.cc", text).empty());
  CHECK(check_source("options/a.cc", text).empty());
  CHECK(check_source("scheduler/rounds/make_round.cc", text).empty());
  CHECK_THAT(describe(check_source("scheduler/scheduler.cc", text)), ContainsSubstring("how replicas are coupled"));
  CHECK_THAT(describe(check_source("train/a.cc", text)), ContainsSubstring("how replicas are coupled"));
}

TEST_CASE("architecture: long files and unfinished work are found") {
  const std::string line = "int x;\n";
  std::string text;
  for (int i = 0; i < 500; ++i) text += line;
  CHECK(check_source("engine/a.cc", text).empty());
  CHECK_THAT(describe(check_source("engine/a.cc", text + line)), ContainsSubstring("501 lines"));
  // The word is split, so that a search for unfinished work does not find this line.
  check({"tests/a.cc",
         "// TO"
         "DO: later\n",
         "work left open"});
  check({"engine/a.cc",
         "// FIX"
         "ME\n",
         "work left open"});
  check({"engine/a.cc", "int todo = 1;\n", nullptr});
}

TEST_CASE("architecture: comments and strings are distinguished from code, and lines keep their numbers") {
  const std::string source = "a/*b\nc*/d\"e//f\"'\"'g//h\ni R\"x(j\n)\"k)x\"l\n";
  CHECK(without_comments(source) == "a   \n   d\"e//f\"'\"'g   \ni R\"x(j\n)\"k)x\"l\n");
  CHECK(without_comments_and_strings(source) == "a   \n   d         g   \ni      \n      l\n");
}

}  // namespace arbalest::tests
