#include "report/tensorboard/hyper_parameters.h"

#include <vector>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "arbalest/v1/job.pb.h"
#include "options/text/source_text.h"
#include "options/text/text_format.h"
#include "options/text/text_outline.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Value;

namespace {

Value value_of(const Message& message, const FieldDescriptor& field) {
  const Reflection& reader = *message.GetReflection();
  Value value;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: value.set_string_value(reader.GetString(message, &field)); break;
    case FieldDescriptor::CPPTYPE_ENUM: value.set_string_value(reader.GetEnum(message, &field)->name()); break;
    case FieldDescriptor::CPPTYPE_BOOL: value.set_bool_value(reader.GetBool(message, &field)); break;
    case FieldDescriptor::CPPTYPE_INT32: value.set_number_value(reader.GetInt32(message, &field)); break;
    case FieldDescriptor::CPPTYPE_INT64:
      value.set_number_value(static_cast<double>(reader.GetInt64(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_UINT32: value.set_number_value(reader.GetUInt32(message, &field)); break;
    case FieldDescriptor::CPPTYPE_UINT64:
      value.set_number_value(static_cast<double>(reader.GetUInt64(message, &field)));
      break;
    case FieldDescriptor::CPPTYPE_FLOAT: value.set_number_value(reader.GetFloat(message, &field)); break;
    case FieldDescriptor::CPPTYPE_DOUBLE: value.set_number_value(reader.GetDouble(message, &field)); break;
    case FieldDescriptor::CPPTYPE_MESSAGE: break;  // add_fields() goes into messages
  }
  return value;
}

void add_fields(const Message& message, const std::string& path, std::map<std::string, Value>& values) {
  const Reflection& reader = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reader.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) continue;
    const std::string name = path.empty() ? field->name() : path + "." + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      add_fields(reader.GetMessage(message, field), name, values);
    } else if (name != "name") {
      values[name] = value_of(message, *field);
    }
  }
}

}  // namespace

std::map<std::string, Value> hyper_parameters(const std::string& job_text) {
  const SourceText source("job.txtpb", job_text);
  v1::Job job;
  parse_text(source, TextOutline(source, *v1::Job::descriptor()), job);
  std::map<std::string, Value> values;
  add_fields(job, "", values);
  return values;
}

}  // namespace arbalest::jobs
