#include "dataflow/models/fields/field_defaults.h"

#include <memory>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/text_format.h>

#include "arbalest/v1/field.pb.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// Whether the field, or another alternative of its oneof, is given.
bool is_given(const Message& message, const FieldDescriptor& field) {
  const Reflection& at = *message.GetReflection();
  if (field.is_repeated()) return at.FieldSize(message, &field) > 0;
  const google::protobuf::OneofDescriptor* oneof = field.real_containing_oneof();
  return oneof == nullptr ? at.HasField(message, &field) : at.HasOneof(message, oneof);
}

// Copies the messages that `message` lacks from `defaults`, which has no other fields.
void complete(const Message& defaults, Message& message) {
  std::vector<const FieldDescriptor*> fields;
  defaults.GetReflection()->ListFields(defaults, &fields);
  const Reflection& at = *message.GetReflection();
  for (const FieldDescriptor* field : fields) {
    ARBALEST_CHECK(field->message_type() != nullptr && !field->is_repeated());
    const Message& missing = defaults.GetReflection()->GetMessage(defaults, field);
    if (!is_given(message, *field)) {
      at.MutableMessage(&message, field)->CopyFrom(missing);
    } else if (field->real_containing_oneof() == nullptr) {
      complete(missing, *at.MutableMessage(&message, field));
    }
  }
}

void fill(Message& message, const FieldDescriptor& field) {
  const bool is_message = field.message_type() != nullptr && field.real_containing_oneof() == nullptr;
  const bool given = is_given(message, field);
  if (given && !is_message) return;
  const std::unique_ptr<Message> defaults(message.New());
  const std::string text = fmt::format("{}: {}", field.name(), field.options().GetExtension(v1::field).default_());
  ARBALEST_CHECK(google::protobuf::TextFormat::ParseFromString(text, defaults.get()));
  if (given) {
    const Reflection& at = *message.GetReflection();
    complete(at.GetMessage(*defaults, &field), *at.MutableMessage(&message, &field));
  } else {
    message.MergeFrom(*defaults);
  }
}

}  // namespace

void fill_field(Message& message, const std::string& field) {
  const FieldDescriptor* descriptor = message.GetDescriptor()->FindFieldByName(field);
  ARBALEST_CHECK(descriptor != nullptr && descriptor->options().GetExtension(v1::field).has_default_());
  fill(message, *descriptor);
}

void fill_fields(Message& message) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const v1::Field& options = field.options().GetExtension(v1::field);
    if (options.has_default_() && !options.has_when()) fill(message, field);
  }
  const Reflection& at = *message.GetReflection();
  std::vector<const FieldDescriptor*> given;
  at.ListFields(message, &given);
  for (const FieldDescriptor* field : given) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) fill_fields(*at.MutableMessage(&message, field));
    for (int i = 0; field->is_repeated() && i < at.FieldSize(message, field); ++i) {
      fill_fields(*at.MutableRepeatedMessage(&message, field, i));
    }
  }
}

}  // namespace arbalest::dataflow
