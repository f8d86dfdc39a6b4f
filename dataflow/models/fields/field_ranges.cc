#include "dataflow/models/fields/field_ranges.h"

#include <vector>

#include "arbalest/v1/field.pb.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

template <typename T>
std::string text_of(const v1::Field& field) {
  const bool is_open = field.has_above();
  const T low = static_cast<T>(is_open ? field.above() : field.min());
  if (!field.has_max() && !field.has_below()) return fmt::format("{} {}", is_open ? "above" : "at least", low);
  const T high = static_cast<T>(field.has_below() ? field.below() : field.max());
  return fmt::format("in {}{}, {}{}", is_open ? '(' : '[', low, high, field.has_below() ? ')' : ']');
}

// NaN is in no range.
template <typename T>
std::string problem_of(const v1::Field& field, const std::string& name, T value) {
  const bool is_above =
      field.has_above() ? value > static_cast<T>(field.above()) : value >= static_cast<T>(field.min());
  const bool is_below = field.has_below() ? value < static_cast<T>(field.below())
                                          : !field.has_max() || value <= static_cast<T>(field.max());
  if (is_above && is_below) return "";
  return fmt::format("{} must be {}, not {}", name, text_of<T>(field), value);
}

bool has_range(const v1::Field& field) { return field.has_min() || field.has_above(); }

// `index`: index of the element of a list, else -1.
std::string problem_of(const Message& message, const FieldDescriptor& field, int index) {
  const v1::Field& options = field.options().GetExtension(v1::field);
  const std::string name = index < 0 ? field.name() : fmt::format("{}[{}]", field.name(), index);
  const Reflection& at = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return problem_of(options, name,
                        index < 0 ? at.GetInt32(message, &field) : at.GetRepeatedInt32(message, &field, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return problem_of(options, name,
                        index < 0 ? at.GetInt64(message, &field) : at.GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return problem_of(options, name,
                        index < 0 ? at.GetFloat(message, &field) : at.GetRepeatedFloat(message, &field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return problem_of(options, name,
                        index < 0 ? at.GetDouble(message, &field) : at.GetRepeatedDouble(message, &field, index));
    default: engine::fail(engine::ErrorKind::kInternal, "{} has a range, but it is no number", field.full_name());
  }
}

// `is_part`: whether the message is a part of the job, such as its learning_rate.
void check(const Message& message, const std::string& prefix, bool is_part, FieldIssues& issues) {
  const Reflection& at = *message.GetReflection();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    const v1::Field& options = field.options().GetExtension(v1::field);
    const std::string path = prefix + field.name();
    const int size = field.is_repeated() ? at.FieldSize(message, &field) : 0;
    const bool is_there = field.is_repeated() ? size > 0 : at.HasField(message, &field);
    const bool is_empty = !field.is_repeated() && field.cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
                          at.GetString(message, &field).empty();
    if (!is_there || is_empty) {
      if (options.has_missing())
        issues.add(path, fmt::format("{} is missing: {}", is_part ? path : field.name(), options.missing()));
    } else if (field.message_type() != nullptr) {
      if (!field.is_repeated()) check(at.GetMessage(message, &field), path + ".", false, issues);
      for (int k = 0; k < size; ++k) {
        check(at.GetRepeatedMessage(message, &field, k), fmt::format("{}[{}].", path, k), false, issues);
      }
    } else if (has_range(options)) {
      if (!field.is_repeated()) issues.add(path, problem_of(message, field, -1));
      for (int k = 0; k < size; ++k) issues.add(fmt::format("{}[{}]", path, k), problem_of(message, field, k));
    }
  }
}

}  // namespace

void check_fields(const Message& message, const std::string& path, FieldIssues& issues) {
  check(message, path.empty() ? "" : path + ".", path.find('.') == std::string::npos, issues);
}

std::string field_problem(const Message& message, const std::string& field) {
  const FieldDescriptor* descriptor = message.GetDescriptor()->FindFieldByName(field);
  ARBALEST_CHECK(descriptor != nullptr && has_range(descriptor->options().GetExtension(v1::field)));
  return message.GetReflection()->HasField(message, descriptor) ? problem_of(message, *descriptor, -1) : "";
}

std::string range_text(const FieldDescriptor& field) {
  const v1::Field& options = field.options().GetExtension(v1::field);
  if (!has_range(options)) return "";
  return field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ? text_of<float>(options) : text_of<double>(options);
}

}  // namespace arbalest::dataflow
