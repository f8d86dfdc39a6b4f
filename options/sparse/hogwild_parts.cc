#include "options/sparse/hogwild_parts.h"

#include <variant>

#include <fmt/format.h>

#include "options/readers/learners_reader.h"
#include "options/readers/learning_rate_reader.h"

namespace arbalest::jobs {

void fill_hogwild(v1::Job& job) {
  v1::LearningRate& rate = *job.mutable_learning_rate();
  if (!rate.has_with_learners()) rate.set_with_learners(v1::LearningRate::KEEP);
  fill_learning_rate(rate, job.training().max_epochs());
}

HogwildOptions read_hogwild(const v1::Job& job, dataflow::FieldIssues& issues) {
  HogwildOptions read{read_learning_rate(job.learning_rate(), job.training(), issues)};
  if (std::holds_alternative<scheduler::Plateau>(read.learning_rate.curve)) {
    issues.add("learning_rate.plateau", "hogwild follows schedules that depend on the epoch only; choose another one");
  }
  if (job.learning_rate().with_learners() != v1::LearningRate::KEEP) {
    issues.add("learning_rate.with_learners",
               "with_learners must be KEEP with hogwild: its learners share one model, and each takes whole steps");
  }
  return read;
}

std::set<std::string> hogwild_rate_fields() {
  std::set<std::string> known;
  for (const char* field : {"base", "with_learners", "fixed", "multistep", "inverse", "step", "exponential",
                            "polynomial", "cosine", "cyclic", "one_cycle", "plateau", "warm_up"}) {
    known.insert(fmt::format("learning_rate.{}", field));
  }
  return known;
}

void refuse_gpus(const JobOptions& options, const std::string& kind, dataflow::FieldIssues& issues) {
  for (std::size_t i = 0; i < options.devices.size(); ++i) {
    if (!options.devices[i].is_cuda()) continue;
    issues.add(
        fmt::format("devices[{}]", i),
        fmt::format("{} needs a CPU device, and '{}' is a GPU; write devices: \"cpu\"", kind, options.devices[i].name));
  }
}

void read_fixed_learners(v1::Job& job, JobOptions& options, dataflow::FieldIssues& issues) {
  const v1::Learners::PerDevice& per_device = job.learners().per_device();
  const bool is_fixed = per_device.count_case() == v1::Learners::PerDevice::kFixed ||
                        per_device.count_case() == v1::Learners::PerDevice::COUNT_NOT_SET;
  if (is_fixed) read_learners(*job.mutable_learners(), options, issues);
}

}  // namespace arbalest::jobs
