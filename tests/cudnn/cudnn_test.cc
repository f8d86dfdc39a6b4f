// Tests queries of the real cuDNN about a GPU that this machine does not have.
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "tests/cudnn/convolution_table.h"
#include "tests/cudnn/device_properties.h"
#include "tests/cudnn/zoo_convolutions.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/source_directory.h"
#include "tests/support/subprocess.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::tests::cudnn {
namespace {

using engine::Precision;
using engine::cuda::Order;

std::string h100() { return source_directory() + "/tests/cudnn/h100.json"; }
std::string table_file() { return source_directory() + "/bench/results/cudnn-h100-convolutions.tsv"; }

// Skips the test if cuDNN is missing, or too old for such queries.
const Library& library_or_skip() {
  static const Library* const library = [] {
    try {
      return new Library(ARBALEST_CUDNN_LIBRARY);
    } catch (const Unavailable& reason) {
      skip_test(reason.what());
    }
  }();
  return *library;
}

std::string properties_error(const std::string& text) {
  const TemporaryDirectory directory;
  const auto file = directory / "gpu.json";
  write_text(file, text);
  try {
    read_device(library_or_skip(), file);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kInvalidJob);
    const std::string message = error.what();
    const std::string prefix = file.string() + ":";
    REQUIRE(message.starts_with(prefix));
    return message.substr(prefix.size());
  }
  FAIL("cuDNN takes the properties");
  return {};
}

// Returns the H100's properties with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = read_text(h100());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Convolution lenet_conv2(Order order, Precision precision) {
  engine::Window window;
  window.kernel = {5, 5};
  return {{32, 20, 12, 12}, {50, 20, 5, 5}, {32, 50, 8, 8}, window, precision, order};
}

// The first line of the committed table, "# cuDNN 9.19.0, device h100.json".
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

TEST_CASE("cudnn: every convolution of the zoo has a repeatable engine, and the table has cuDNN's answers") {
  const Library& library = library_or_skip();
  const std::vector<Row> rows = ask_about_zoo(library, read_device(library, h100()));
  int used = 0;
  for (const Row& row : rows) {
    if (!row.used) continue;
    ++used;
    INFO(to_string(row));
    REQUIRE(row.answer.has_value());
    const std::optional<Engine>& engine = row.answer->engine;
    REQUIRE(engine.has_value());
    CHECK(engine->workspace_bytes >= 0);
    CHECK(engine->workspace_bytes <= kAllowedWorkspaceBytes);
    CHECK((!engine->tensor_cores || row.convolution.precision != Precision::kFloat32));
  }
  CHECK(used > 500);

  const std::string text = to_text(rows, title_of(library, h100()));
  const std::string committed = read_text(table_file());
  if (first_line(committed) != first_line(text)) {
    skip_test(fmt::format("every convolution has an engine; {} is for \"{}\", and this is \"{}\"", table_file(),
                          first_line(committed), first_line(text)));
  }
  std::istringstream lines(text), expected(committed);
  for (std::string line, wanted; std::getline(expected, wanted) || !lines.eof();) {
    std::getline(lines, line);
    INFO("write the table again: cudnn_table tests/cudnn/h100.json > " << table_file());
    REQUIRE(line == wanted);
    line.clear();
    wanted.clear();
  }
}

TEST_CASE("cudnn: the answers depend on precision and order") {
  const Library& library = library_or_skip();
  const Descriptor device = read_device(library, h100());
  const auto answer = [&](Order order, Precision precision, Pass pass, std::int64_t allowed = kAllowedWorkspaceBytes) {
    return ask(library, device, lenet_conv2(order, precision), pass, allowed);
  };
  const Answer plain = answer(Order::kCanonical, Precision::kFloat32, Pass::kForward);
  CHECK(plain.with_cores == 0);
  CHECK(plain.without_cores > 0);
  const Answer cores = answer(Order::kChannelsLast, Precision::kTensorFloat32, Pass::kForward);
  CHECK(cores.with_cores > 0);
  CHECK(cores.without_cores == plain.without_cores);
  CHECK(answer(Order::kChannelsLast, Precision::kBFloat16, Pass::kWeightGradient).with_cores > 0);
  // No engine has a negative workspace.
  CHECK_FALSE(answer(Order::kCanonical, Precision::kFloat32, Pass::kForward, -1).engine.has_value());
}

TEST_CASE("cudnn: a convolution with inconsistent shapes is refused with cuDNN's message") {
  const Library& library = library_or_skip();
  const Descriptor device = read_device(library, h100());
  Convolution wrong = lenet_conv2(Order::kChannelsLast, Precision::kBFloat16);
  wrong.output = {32, 50, 9, 8};
  CHECK_THROWS_WITH(ask(library, device, wrong, Pass::kForward, kAllowedWorkspaceBytes),
                    ContainsSubstring("CUDNN_STATUS_"));
}

TEST_CASE("cudnn: the zoo's convolutions agree with its layers") {
  const std::vector<ZooConvolution> found = zoo_convolutions(Precision::kBFloat16);
  REQUIRE(found.size() > 2);
  CHECK(to_string(found[0].convolution) == "32x1x28x28 * 20x1x5x5, stride 1x1, padding 0x0");
  CHECK_FALSE(found[0].input_gradient);
  CHECK(to_string(found[1].convolution) == "32x20x12x12 * 50x20x5x5, stride 1x1, padding 0x0");
  CHECK(found[1].input_gradient);
  CHECK(found[1].convolution.order == Order::kChannelsLast);
  const auto has_groups = [](const ZooConvolution& zoo) { return zoo.convolution.groups() > 1; };
  CHECK(std::ranges::any_of(found, has_groups));  // depthwise convolutions
}

TEST_CASE("cudnn: the error for an invalid device-property file has the position and a remedy") {
  CHECK_THAT(properties_error("{\n  \"deviceVer\": 900,\n  oops\n}"), ContainsSubstring("3:3: error: this is no JSON"));
  CHECK_THAT(properties_error("[1]"), ContainsSubstring("1:1: error: expected one JSON object"));
  CHECK_THAT(properties_error(""), ContainsSubstring("1:1: error: the file with the GPU's properties cannot be read"));
  CHECK(properties_error(changed("\"warpSize\": 32,", "")) ==
        "25:1: error: warpSize is missing; cuDNN needs a whole number above 0 for it");
  CHECK(properties_error(changed("132", "0")) ==
        "5:3: error: multiProcessorCount must be a whole number above 0 (got 0)");
  CHECK_THAT(properties_error(changed("[1024, 1024, 64]", "[1024, 64]")),
             ContainsSubstring("maxBlockSize must be a list of three whole numbers above 0 (got [1024,64])"));
  // The form is valid, but cuDNN does not know such a GPU.
  CHECK_THAT(properties_error(changed("900", "300")),
             ContainsSubstring("3:3: error: cuDNN ") && ContainsSubstring("refuses these properties; check deviceVer"));
}

TEST_CASE("cudnn: the error for a missing or old library says so") {
  CHECK_THROWS_WITH(Library("/nowhere/libcudnn.so.9"), ContainsSubstring("cuDNN cannot be loaded: /nowhere/"));
  CHECK_THROWS_AS(Library(ARBALEST_OLD_CUDNN), Unavailable);
  CHECK_THROWS_WITH(
      Library(ARBALEST_OLD_CUDNN),
      ContainsSubstring("is cuDNN 9.1.0, which answers no question without a GPU; install 9.8.0 or newer"));
}

TEST_CASE("cudnn: the program has different exit codes for wrong usage, invalid files and a missing cuDNN") {
  library_or_skip();
  const TemporaryDirectory directory;
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ARBALEST_CUDNN_TABLE);
    return Subprocess(arguments, {}, directory.path()).wait();
  };
  CHECK(run({}).exit_code == 2);
  const Completed wrong = run({"nothing.json"});
  CHECK(wrong.exit_code == 3);
  CHECK_THAT(wrong.err, ContainsSubstring("nothing.json:1:1: error: ") && ContainsSubstring("No such file"));
}

}  // namespace arbalest::tests::cudnn
