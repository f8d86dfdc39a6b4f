// A valid job, ways to break it, and the error messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "options/loading/load_job.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

inline constexpr std::string_view kGoodJob = R"(name: "job"
model { zoo { lenet {} } }
data { digits {} }
training { batch_size: 32 max_epochs: 10 }
learning_rate { base: 0.01 }
learners { per_device { fixed: 2 } }
)";

// Returns the valid job with `from` replaced by `to`.
inline std::string changed(std::string_view from, std::string_view to) {
  std::string text(kGoodJob);
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Returns the valid job with another model.
inline std::string with_model(std::string_view model) { return changed("model { zoo { lenet {} } }", model); }

inline JobOptions parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_job(SourceText("job.txtpb", text), overrides);
}

// Returns the error message for a job. The error must be of kind `kind`.
inline std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {},
                           engine::ErrorKind kind = engine::ErrorKind::kInvalidJob) {
  try {
    require_stable_steps(parse(text, overrides));
  } catch (const engine::Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL("the job was accepted:\n" << text);
  return "";
}

// A change of the valid job that makes it invalid.
struct BadValue {
  std::string from;
  std::string to;
  std::string said;  // first line, after "job.txtpb:"
};

inline void check_bad_values(const std::vector<BadValue>& values) {
  for (const BadValue& value : values) {
    INFO(value.to);
    const std::string text = refusal(changed(value.from, value.to));
    CHECK(text.substr(0, text.find('\n')) == "job.txtpb:" + value.said);
  }
}

}  // namespace arbalest::jobs
