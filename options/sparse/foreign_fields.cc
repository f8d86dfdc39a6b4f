#include "options/sparse/foreign_fields.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

class ForeignFields {
 public:
  ForeignFields(const std::set<std::string>& known, const std::string& kind, dataflow::FieldIssues& issues)
      : known_(known), kind_(kind), issues_(issues) {}

  void look_at(const Message& message, const std::string& prefix) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const std::string path = prefix + field->name();
      if (known_.contains(path)) continue;
      const bool is_around =
          std::ranges::any_of(known_, [&](const std::string& known) { return known.starts_with(path + "."); });
      if (is_around) {
        look_at(message.GetReflection()->GetMessage(message, field), path + ".");
      } else {
        issues_.add(field->is_repeated() ? path + "[0]" : path,
                    fmt::format("{} does not go with {}; remove it", field->name(), kind_));
      }
    }
  }

 private:
  const std::set<std::string>& known_;
  const std::string& kind_;
  dataflow::FieldIssues& issues_;
};

}  // namespace

void refuse_foreign_fields(const v1::Job& job, const std::set<std::string>& known, const std::string& kind,
                           dataflow::FieldIssues& issues) {
  ForeignFields(known, kind, issues).look_at(job, "");
}

}  // namespace arbalest::jobs
