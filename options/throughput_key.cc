#include "options/throughput_key.h"

#include <algorithm>
#include <string>

#include "arbalest/v1/job.pb.h"
#include "dataflow/models/model_reader.h"
#include "dataflow/models/zoo/zoo.h"
#include "engine/base/error.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

namespace {

v1::Job read_resolved(const std::string& text) {
  v1::Job job;
  const SourceText source("job", text);
  const SyntaxReport report = parse_text(source, TextOutline(source, *v1::Job::descriptor()), job);
  ARBALEST_CHECK(report.issues.empty());
  return job;
}

// Name of the chosen alternative: "sgd".
std::string alternative(const google::protobuf::Message& message, const char* oneof) {
  const auto* descriptor = message.GetDescriptor()->FindOneofByName(oneof);
  ARBALEST_CHECK(descriptor != nullptr);
  const auto* field = message.GetReflection()->GetOneofFieldDescriptor(message, descriptor);
  return field == nullptr ? "none" : field->name();
}

}  // namespace

nlohmann::ordered_json throughput_key(const JobOptions& job) {
  v1::Job written = read_resolved(job.resolved_text);
  v1::Model& model = *written.mutable_model();
  dataflow::fill_defaults(model);
  if (model.has_zoo()) {
    dataflow::FieldIssues none;
    *model.mutable_layers() = dataflow::expand(model.zoo(), job.data.input, none);
    model.clear_zoo();
    dataflow::fill_defaults(model);
  }
  std::string data = print_text(written.data());
  std::ranges::replace(data, '\n', ' ');
  nlohmann::ordered_json key = {{"model", print_text(model)},
                                {"data", data},
                                {"batch_size", job.training.batch_size},
                                {"precision", to_string(job.training.precision)},
                                {"optimizer", alternative(written.optimizer(), "kind")},
                                {"clips_gradients", job.optimizer.clip_gradient_norm.has_value()},
                                {"synchronization", alternative(written.synchronization(), "kind")},
                                {"period", job.synchronization.period}};
  const auto& frozen = written.training().freeze();
  if (!frozen.empty()) key["frozen"] = std::vector<std::string>(frozen.begin(), frozen.end());
  if (job.team > 1) key["team"] = job.team;
  if (job.chooses_team) key["team"] = "all";
  const bool is_fixed = job.training.kernels == engine::KernelSelection::kFixed;
  if (is_fixed && !job.devices.empty() && job.devices.front().is_cuda()) key["kernels"] = "FIXED";
  return key;
}

}  // namespace arbalest::jobs
