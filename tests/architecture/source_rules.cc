#include "tests/architecture/source_rules.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "tests/architecture/class_sizes.h"
#include "tests/architecture/function_lengths.h"
#include "tests/architecture/source_text.h"

namespace arbalest::tests {

namespace {

constexpr int kMaxLines = 500;
constexpr int kMaxFunctionLines = 60;
constexpr int kMaxMemberFunctions = 40;

// The folders above the scheduler, where everything about jobs is.
const std::set<std::string>& houses() {
  static const std::set<std::string> kHouses = {"messages",   "options", "saved_model", "fetch",
                                                "checkpoint", "train",   "report",      "interchange",
                                                "predict",    "study",   "api"};
  return kHouses;
}

// Returns, for each top-level folder, those that it may include besides itself.
const std::map<std::string, std::set<std::string>>& arrows() {
  static const std::map<std::string, std::set<std::string>> kArrows = [] {
    const std::set<std::string> training = {"scheduler", "learners", "sma", "dataflow", "engine"};
    std::map<std::string, std::set<std::string>> all = {
        {"engine", {}},
        {"autotuner", {}},
        {"proto", {}},
        {"dataflow", {"engine"}},
        {"sma", {"engine"}},
        {"learners", {"dataflow", "engine"}},
        {"scheduler", {"learners", "sma", "dataflow", "engine"}},
        {"messages", {}},
        {"options", {"messages", "proto"}},
        {"saved_model", {"messages"}},
        {"fetch", {"saved_model", "messages"}},
        {"checkpoint", {"options", "saved_model", "messages"}},
        {"train", {"checkpoint", "options", "saved_model", "messages", "autotuner"}},
        {"report", {"train", "checkpoint", "options", "saved_model", "messages"}},
        {"interchange", {"report", "train", "checkpoint", "options", "saved_model", "messages"}},
        {"predict", {"train", "options", "saved_model", "messages"}},
        {"study", {"report", "train", "checkpoint", "options", "saved_model", "messages", "autotuner"}},
        {"api", {"predict", "report", "train", "checkpoint", "options", "saved_model", "messages"}},
        {"cli", houses()},
    };
    for (const std::string& house : houses()) all.at(house).insert(training.begin(), training.end());
    all.at("cli").insert(training.begin(), training.end());
    all.at("cli").insert("autotuner");
    all.at("cli").erase("api");
    return all;
  }();
  return kArrows;
}

// The headers outside engine/process that it may include, so that it builds and is tested without the engine.
const std::set<std::string>& headers_of_processes() {
  static const std::set<std::string> kHeaders = {"engine/base/error.h", "engine/cpu/passes/pairwise_blocks.h"};
  return kHeaders;
}

// The files outside engine that may wait for a device, by the header with which they do.
const std::map<std::string, std::set<std::string>>& users_of_waiting() {
  static const std::map<std::string, std::set<std::string>> kUsers = {
      {"engine/waiting.h",
       {"dataflow/input/batches/cached_data.cc", "learners/gradient_sum.cc", "learners/inference_model.cc",
        "learners/inference_runner.cc", "learners/learner.cc", "learners/step_trial.cc",
        "scheduler/replicas/replicas.cc", "scheduler/scheduler.cc", "scheduler/shards/gather_shards.cc",
        "scheduler/shards/sharded_pushes.cc", "sma/central_model.cc", "sma/parameter_server.cc"}},
      {"engine/host/completions.h", {"scheduler/rounds/server_round.h", "scheduler/shards/sharded_pushes.h"}}};
  return kUsers;
}

struct VendorRule {
  const char* header;  // regular expression for the whole name
  const char* vendor;
  std::vector<std::string> folders;  // folders that may include the header
};

// Adds the folders above the scheduler, and cli.
std::vector<std::string> above_scheduler(std::vector<std::string> folders) {
  folders.insert(folders.end(), houses().begin(), houses().end());
  folders.emplace_back("cli");
  return folders;
}

const std::vector<VendorRule>& vendor_rules() {
  static const std::vector<VendorRule> kRules = {
      {R"((oneapi/dnnl/|dnnl).*|omp\.h)", "oneDNN and OpenMP", {"engine/cpu"}},
      {R"((oneapi/)?tbb(/|\.h).*)", "oneTBB", {"engine/host"}},
      {R"((cuda|cudnn|cublas|curand|nccl|nvtx).*)", "CUDA", {"engine/cuda"}},
      {R"(mpi\.h)", "MPI", {"engine/process/mpi"}},
      {R"(google/protobuf/(text_format|io/tokenizer)\.h)",
       "the parser of protobuf text",
       {"options/text", "checkpoint", "dataflow/models/fields"}},
      {R"(google/protobuf/.*)", "protobuf", above_scheduler({"dataflow/models", "dataflow/input"})},
      {R"(tensorboard/.*\.pb\.h)", "the schema of TensorBoard's files", {"report/tensorboard"}},
      {R"(tensorflow/.*\.pb\.h)", "the schema of TFRecord files", {"dataflow/input/formats"}},
      {R"(onnx/.*\.pb\.h)", "the schema of ONNX files", {"interchange"}},
      {R"(curl/.*)", "libcurl", {"fetch"}},
      {R"(xxhash\.h)", "xxHash", {"checkpoint"}},
      {R"((jpeglib|jerror|png)\.h|webp/.*)", "libjpeg-turbo, libpng and libwebp", {"dataflow/input/images"}},
      {R"(arbalest/v1/(field|model|zoo)\.pb\.h)", "the model's schema", above_scheduler({"dataflow/models"})},
      {R"(arbalest/.*\.pb\.h)", "the schema", above_scheduler({})},
  };
  return kRules;
}

// The headers that other programs include. They are installed as "arbalest/...", and named so here, too.
constexpr const char* kPublicHeaders = "api/arbalest";

bool is_below(const std::string& path, const std::string& folder) { return path.starts_with(folder + "/"); }

std::string top_folder(const std::string& path) { return path.substr(0, path.find('/')); }

bool is_free(const std::string& path) { return is_below(path, "tests") || is_below(path, "bench"); }

class Checker {
 public:
  Checker(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  std::vector<Violation> run() {
    check_place();
    check_length_and_open_work();
    check_lines();
    if (!is_below(path_, "tests")) check_functions();
    check_classes();
    if (!is_free(path_)) check_statics();
    return std::move(violations_);
  }

 private:
  void report(int line, std::string reason) { violations_.push_back({path_, line, std::move(reason)}); }

  void check_place() {
    if (!is_free(path_) && !arrows().contains(top_folder(path_))) report(1, "is in no folder of the design");
  }

  void check_length_and_open_work() {
    // The word is split, so that a search for unfinished work does not find this line.
    static const std::regex kOpenWork(
        "\\b(TO"
        "DO|FIX"
        "ME)\\b");
    std::istringstream lines(text_);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      if (std::regex_search(line, kOpenWork)) report(number, "work left open");
    }
    if (number > kMaxLines) report(number, fmt::format("has {} lines; the limit is {}", number, kMaxLines));
  }

  void check_lines() {
    static const std::regex kInclude(R"re(^\s*#\s*(?:include|import)\s*(["<])([^">]+)[">])re");
    static const std::regex kCudaConditional(R"(^\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|NVCC))");
    static const std::regex kEnvironment(R"(\b(secure_)?getenv\b)");
    static const std::regex kThreadLocal(R"(\bthread_local\b)");
    static const std::regex kWait(R"(\bsynchronize\(|\bcollective_?(\.|->)wait\(|stream_?(\(\))?(\.|->)drain\()");
    static const std::regex kMode(R"(\bSynchronizationMode::)");
    std::istringstream with_strings(without_comments(text_));
    std::istringstream bare(without_comments_and_strings(text_));
    std::string line;
    std::string code;
    for (int number = 1; std::getline(with_strings, line) && std::getline(bare, code); ++number) {
      std::smatch match;
      if (std::regex_search(line, match, kInclude)) check_include(number, match[1] == "\"", match[2]);
      const bool may_ask_for_cuda = is_below(path_, "engine/cuda") || path_ == "engine/elementwise/portable.h";
      if (!may_ask_for_cuda && std::regex_search(code, kCudaConditional)) {
        report(number, "a conditional on CUDA; link cuda/ or no_cuda/ instead");
      }
      if (is_free(path_)) continue;
      if (!is_below(path_, "cli") && std::regex_search(code, kEnvironment)) {
        report(number, "reads the environment; only cli may");
      }
      if (std::regex_search(code, kThreadLocal)) report(number, "a thread_local; pass the context instead");
      if (!is_below(path_, "engine") && std::regex_search(code, kWait)) {
        report(number, "waits for a device; engine/waiting.h does, in files that the rules list");
      }
      if (!may_ask_for_mode() && std::regex_search(code, kMode)) {
        report(number, "asks how replicas are coupled; a subclass of scheduler/rounds/round.h does what that decides");
      }
    }
  }

  // The schemes themselves, the vectors that they need, the choice of a round, and what a job may ask of its scheme.
  bool may_ask_for_mode() const {
    return is_below(path_, "sma") || is_below(path_, "options") || path_ == "scheduler/rounds/make_round.cc";
  }

  void check_include(int line, bool quoted, const std::string& header) {
    if (is_free(path_)) return;
    if (is_below(path_, kPublicHeaders)) return check_public_include(line, quoted, header);
    for (const VendorRule& rule : vendor_rules()) {
      if (!std::regex_match(header, std::regex(rule.header))) continue;
      const bool allowed =
          std::ranges::any_of(rule.folders, [&](const std::string& folder) { return is_below(path_, folder); });
      if (!allowed) {
        report(line,
               fmt::format("includes <{}>: {} belongs to {}", header, rule.vendor, fmt::join(rule.folders, ", ")));
      }
      return;
    }
    if (!quoted) return;
    check_arrow(line, header);
  }

  void check_public_include(int line, bool quoted, const std::string& header) {
    const bool is_standard = !quoted && header.find_first_of("./") == std::string::npos;
    if (is_standard || (quoted && is_below(header, "arbalest"))) return;
    report(line,
           fmt::format("includes {}: a public header includes only the standard library and public headers", header));
  }

  void check_arrow(int line, const std::string& header) {
    const std::string from = top_folder(path_);
    const std::string to = top_folder(header);
    if (to == "arbalest") {
      if (is_below(path_, "api")) return;
      report(line, fmt::format("includes \"{}\": the public headers are for other programs and for api", header));
    } else if (from != "engine" && users_of_waiting().contains(header) &&
               !users_of_waiting().at(header).contains(path_)) {
      report(line, "waits for a device; only files that the rules list may");
    } else if (!arrows().contains(to)) {
      report(line, fmt::format("includes \"{}\", which is not one of our folders, named from the root", header));
    } else if (from != to && arrows().contains(from) && !arrows().at(from).contains(to)) {
      report(line, fmt::format("includes \"{}\", against the arrows: {} may not know {}", header, from, to));
    } else if (from != "engine" && (is_below(header, "engine/cpu") || is_below(header, "engine/cuda"))) {
      report(line, fmt::format("includes \"{}\": only engine knows its backends", header));
    } else if (is_below(path_, "engine/process") && !is_below(header, "engine/process") &&
               !headers_of_processes().contains(header)) {
      report(line, fmt::format("includes \"{}\": engine/process knows only the engine's errors", header));
    }
  }

  void check_functions() {
    for (const FunctionLength& function : function_lengths(without_comments_and_strings(text_))) {
      if (function.lines <= kMaxFunctionLines) continue;
      report(function.line, fmt::format("a function of {} lines; the limit is {}", function.lines, kMaxFunctionLines));
    }
  }

  void check_classes() {
    for (const ClassSize& each : class_sizes(without_comments_and_strings(text_))) {
      if (each.functions <= kMaxMemberFunctions) continue;
      report(each.line, fmt::format("{} has {} member functions; the limit is {}", each.name, each.functions,
                                    kMaxMemberFunctions));
    }
  }

  // Finds mutable static variables, and the usual names of a singleton.
  void check_statics() {
    static const std::regex kStaticVariable(
        R"(\bstatic\s+(?!.*\b(?:const|constexpr)\b)(?:inline\s+)?[A-Za-z_][\w:<>,\s*&]*?[\s*&>]\w+\s*(?:\[[^\]]*\]\s*)*[;={])");
    static const std::regex kSingleton(R"(\b(get_?[iI]nstance|instance)\s*\(\s*\))");
    std::istringstream lines(without_comments_and_strings(text_));
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      if (std::regex_search(line, kStaticVariable)) report(number, "a static variable; give it an owner");
      if (std::regex_search(line, kSingleton)) report(number, "a singleton; pass what is needed");
    }
  }

  const std::string& path_;
  const std::string& text_;
  std::vector<Violation> violations_;
};

}  // namespace

std::vector<Violation> check_source(const std::string& path, const std::string& text) {
  return Checker(path, text).run();
}

std::string describe(const std::vector<Violation>& violations) {
  std::string text;
  for (const Violation& violation : violations) {
    text += fmt::format("{}:{}: {}\n", violation.file, violation.line, violation.reason);
  }
  return text;
}

}  // namespace arbalest::tests
