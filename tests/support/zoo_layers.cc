#include "tests/support/zoo_layers.h"

#include <google/protobuf/text_format.h>

#include "arbalest/v1/model.pb.h"
#include "dataflow/models/model_reader.h"

namespace arbalest::tests {

std::vector<dataflow::LayerDescription> zoo_layers(const std::string& model, const dataflow::InputDescription& input) {
  v1::Model message;
  ARBALEST_CHECK(google::protobuf::TextFormat::ParseFromString(model, message.mutable_zoo()));
  dataflow::fill_defaults(message);
  dataflow::FieldIssues issues;
  std::vector<dataflow::LayerDescription> layers = dataflow::read_model(message, input, issues);
  for (const dataflow::FieldIssue& issue : issues.all()) {
    engine::fail(engine::ErrorKind::kInternal, "{}: {}", issue.path, issue.message);
  }
  return layers;
}

}  // namespace arbalest::tests
