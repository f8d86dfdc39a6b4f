// The instruction sets that oneDNN's environment variable leaves decide which precisions there are.
#include <algorithm>

#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace {

using nlohmann::json;

json cpu_of(const Program& program) {
  for (const json& device : json::parse(program.run({"devices", "--json"}).out)) {
    if (device["name"] == "cpu") return device;
  }
  return {};
}

json precisions(const Program& program) { return cpu_of(program)["precisions"]; }

bool has_bfloat16() {
  const json report = json::parse(Program().run({"env", "--json"}).out);
  for (const json& set : report["instruction_sets"]) {
    if (set == "avx512_bf16") return true;
  }
  return false;
}

}  // namespace

TEST_CASE("instruction sets: devices say what each precision brings, and measure BF16 where it may be used") {
  const json here = cpu_of(Program());
  for (const char* name : {"FP32", "TF32", "BF16"}) {
    CHECK_FALSE(here["precision_notes"][name].get<std::string>().empty());
  }
  CHECK(here.contains("bf16_speed_over_fp32") == has_bfloat16());
  if (has_bfloat16()) {
    CHECK(here["bf16_speed_over_fp32"].size() == 2);
    for (const json& ratio : here["bf16_speed_over_fp32"]) CHECK(ratio > 0.0);
  }
  Program limited;
  limited.set_environment("ONEDNN_MAX_CPU_ISA=AVX2");
  const json without = cpu_of(limited);
  CHECK(without["precision_notes"]["FP32"].get<std::string>().starts_with("multiply-adds of AVX2"));
  CHECK(without["precision_notes"]["BF16"].get<std::string>().starts_with("not available"));
  CHECK_FALSE(without.contains("bf16_speed_over_fp32"));
  CHECK_THAT(limited.run({"devices"}).out, ContainsSubstring("\n  BF16: not available"));
}

TEST_CASE("instruction sets: a limit takes BF16 away, a job that asks for it is refused at its line, and FP32 trains") {
  const bool has = has_bfloat16();
  CHECK(precisions(Program()) == (has ? json{"FP32", "BF16"} : json{"FP32"}));
  for (const char* variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    for (const char* limit : {"AVX2", "AVX512_CORE"}) {
      INFO(variable << "=" << limit);
      Program program;
      program.set_environment(std::string(variable) + "=" + limit);
      CHECK(precisions(program) == json{"FP32"});
      for (const json& set : json::parse(program.run({"env", "--json"}).out)["instruction_sets_in_force"]) {
        CHECK(set != "avx512_bf16");
      }
      std::string job = read_text(Program::config("logistic-digits"));
      const std::size_t training = job.find("training {");
      REQUIRE(training != std::string::npos);
      job.insert(training + 10, "\n  precision: BF16");
      const auto line = 2 + std::count(job.begin(), job.begin() + static_cast<std::ptrdiff_t>(training), '\n');
      write_text(program / "job.txtpb", job);
      const Completed refused = program.run({"train", "job.txtpb", "--output", "refused"});
      CHECK(refused.exit_code == 3);
      CHECK_THAT(refused.err, ContainsSubstring("job.txtpb:" + std::to_string(line) + ":"));
      CHECK_THAT(refused.err, ContainsSubstring("precision BF16 needs") && ContainsSubstring("leave precision out"));
      if (has) CHECK_THAT(refused.err, ContainsSubstring("ONEDNN_MAX_CPU_ISA or DNNL_MAX_CPU_ISA forbids it"));
      const Completed trained = program.run(kSmall);
      INFO(trained.err);
      CHECK(trained.exit_code == 0);
    }
  }
}

}  // namespace arbalest::tests
