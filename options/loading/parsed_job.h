// The text of a job, parsed once. Options are read from it, and messages point into it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/fields/field_issues.h"
#include "engine/base/error.h"
#include "options/job_options.h"
#include "options/readers/run_shape.h"
#include "options/text/source_text.h"
#include "options/text/text_outline.h"

namespace arbalest::jobs {

// The first lines of every job that the program writes.
inline constexpr const char* kJobHeader = "# proto-file: arbalest/v1/job.proto\n# proto-message: arbalest.v1.Job\n\n";

// In all functions `settings` are changes of the job ("training.batch_size=16", see overrides.h).
class ParsedJob {
 public:
  // Throws ErrorKind::kInvalidJob with all syntax errors, up to the first one from which the parser cannot recover.
  explicit ParsedJob(SourceText source);

  // Puts `model` in the place of the text's model, which may be missing or wrong, and forgets the initial weights. What
  // read() reports about the model then points at the model of the text, if there is one.
  void replace_model(const v1::Model& model);

  // The job as the text has it, without defaults; with the model of replace_model().
  const v1::Job& written() const noexcept { return written_; }

  // Reads and checks the job for a run of this shape. What the devices of all processes must divide is checked if their
  // number is known. The result lacks the warnings about synchronization, which depend on the learners of all
  // processes. Throws all semantic errors at once, with the kinds and the places that load_job (load_job.h) describes.
  JobOptions read(std::span<const std::string> settings, const RunShape& shape = {}) const;

  // The warnings about the synchronization of `options`, which read() has returned for the same settings. Their paths
  // are those of fields.
  std::vector<dataflow::FieldIssue> warnings(std::span<const std::string> settings, const JobOptions& options) const;
  // Adds these warnings and number_warnings() to `options`, each with the place of its field: "job.txtpb:8:19:
  // synchronization.async_sgd: ...".
  void warn(std::span<const std::string> settings, JobOptions& options) const;

  // Warnings about numbers in the text that protobuf reads as octal: "job.txtpb:8:19: batch_size: 064 is octal 52,
  // ...".
  std::vector<std::string> number_warnings() const;

  // Why a new run of `options`, which read() has returned for the same settings, must not begin (step_growth_check.h);
  // none if it may. Depends on the learners of all processes.
  std::optional<engine::Error> growth_error(std::span<const std::string> settings, const JobOptions& options) const;

  // Makes the error about the value at `path`: it names the setting that the value comes from (kUsage), or the place of
  // the field in the text (kInvalidJob).
  engine::Error error_at(const std::string& path, std::span<const std::string> settings, std::string message) const;

 private:
  SourceText source_;
  TextOutline outline_;
  v1::Job written_;
};

}  // namespace arbalest::jobs
