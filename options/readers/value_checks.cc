#include "options/readers/value_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "messages/text_encoding.h"
#include "options/text/schema_names.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

std::string check_text(const FieldDescriptor& field, const std::string& text) {
  if (!is_utf8(text)) return field.name() + " is not valid UTF-8";
  if (std::ranges::any_of(text, is_control)) return field.name() + " holds a control character";
  return "";
}

// `largest`: largest finite value of the field's type.
std::string check_number(const FieldDescriptor& field, double value, double largest) {
  if (std::isfinite(value)) return "";
  if (std::isnan(value)) return field.name() + " must be a finite number, not nan";
  // The value itself is not shown: 1e999 also reads as infinite.
  return fmt::format("{} must be a finite number; the largest is {:.1e}", field.name(), largest);
}

std::string check_enum(const FieldDescriptor& field, int value) {
  const auto* known = field.enum_type()->FindValueByNumber(value);
  if (known != nullptr && value != 0) return "";
  return no_such_value(field, known == nullptr ? std::to_string(value) : known->name());
}

class ValueChecker {
 public:
  explicit ValueChecker(dataflow::FieldIssues& issues) : issues_(issues) {}

  void check(const Message& message, const std::string& prefix) {
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const std::string path = prefix + field->name();
      if (!field->is_repeated()) {
        check_field(message, *field, -1, path);
        continue;
      }
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        check_field(message, *field, i, fmt::format("{}[{}]", path, i));
      }
    }
  }

 private:
  // index: index of the element in a repeated field, else -1.
  void check_field(const Message& message, const FieldDescriptor& field, int index, const std::string& path) {
    const Reflection& at = *message.GetReflection();
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        check(index < 0 ? at.GetMessage(message, &field) : at.GetRepeatedMessage(message, &field, index), path + ".");
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        issues_.add(path, check_text(field, index < 0 ? at.GetString(message, &field)
                                                      : at.GetRepeatedString(message, &field, index)));
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        issues_.add(
            path,
            check_number(field, index < 0 ? at.GetFloat(message, &field) : at.GetRepeatedFloat(message, &field, index),
                         double{std::numeric_limits<float>::max()}));
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        issues_.add(
            path, check_number(field,
                               index < 0 ? at.GetDouble(message, &field) : at.GetRepeatedDouble(message, &field, index),
                               std::numeric_limits<double>::max()));
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        issues_.add(path, check_enum(field, index < 0 ? at.GetEnumValue(message, &field)
                                                      : at.GetRepeatedEnumValue(message, &field, index)));
        break;
      default:  // integers and booleans, which the parser has checked
        break;
    }
  }

  dataflow::FieldIssues& issues_;
};

}  // namespace

void check_values(const Message& message, dataflow::FieldIssues& issues) { ValueChecker(issues).check(message, ""); }

}  // namespace arbalest::jobs
