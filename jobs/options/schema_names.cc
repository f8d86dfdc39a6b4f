#include "jobs/options/schema_names.h"

#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arbalest/v1/job.pb.h"
#include "engine/nearest_name.h"

namespace arbalest::jobs {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace {

std::vector<std::string> field_names(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

// The path from `type` to the first field for which `matches` holds, "training.batch_size"; elements of lists are
// searched only if `in_lists`. "" if there is no such field. The schema has no recursive message.
template <typename Predicate>
std::string find_path(const Descriptor& type, const Predicate& matches, bool in_lists) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (matches(*type.field(i))) return type.field(i)->name();
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() == nullptr || (field.is_repeated() && !in_lists)) continue;
    const std::string path = find_path(*field.message_type(), matches, in_lists);
    if (!path.empty()) return field.name() + "." + path;
  }
  return "";
}

// Prefers a field outside of lists, because it exists only once.
template <typename Predicate>
std::string find_path(const Descriptor& type, const Predicate& matches) {
  std::string path = find_path(type, matches, false);
  return path.empty() ? find_path(type, matches, true) : path;
}

// The alternative of a oneof that has this type; null if there is none.
const FieldDescriptor* find_alternative(const Descriptor& type) {
  const FieldDescriptor* found = nullptr;
  find_path(*v1::Job::descriptor(), [&](const FieldDescriptor& field) {
    if (field.message_type() != &type || field.real_containing_oneof() == nullptr) return false;
    found = &field;
    return true;
  });
  return found;
}

// The alternatives of a oneof that have such a field.
std::vector<std::string> alternatives_with(const std::string& field, const google::protobuf::OneofDescriptor& oneof) {
  std::vector<std::string> names;
  for (int i = 0; i < oneof.field_count(); ++i) {
    const Descriptor* type = oneof.field(i)->message_type();
    if (type != nullptr && type->FindFieldByName(field) != nullptr) names.push_back(oneof.field(i)->name());
  }
  return names;
}

// "'<kind>.period' with the kind that the job has (sma, ea_sgd)" if several alternatives of one oneof of `type` have
// the field: which of them a job has is not known here. "" otherwise.
std::string field_of_kinds(const Descriptor& type, const std::string& name) {
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    const std::vector<std::string> kinds = alternatives_with(name, *type.oneof_decl(i));
    if (kinds.size() > 1) {
      return fmt::format("'<kind>.{}' with the kind that the job has ({})", name, fmt::join(kinds, ", "));
    }
  }
  return "";
}

// Name of a message in errors: "training" for the message Training, "the job" for Job, "swap" for that alternative.
std::string describe_type(const Descriptor& type) {
  if (&type == v1::Job::descriptor()) return "the job";
  if (const FieldDescriptor* alternative = find_alternative(type)) return alternative->name();
  std::string text;
  for (const char c : type.name()) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (is_upper && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

}  // namespace

std::string no_such_field(const Descriptor& type, std::string_view name) {
  const std::string text = fmt::format("no field '{}' in {}", name, describe_type(type));
  const auto has_name = [&](const FieldDescriptor& field) { return field.name() == name; };
  const std::string of_kinds = field_of_kinds(type, std::string(name));
  if (!of_kinds.empty()) return fmt::format("{}; did you mean {}?", text, of_kinds);
  std::string suggestion = find_path(type, has_name);
  if (suggestion.empty()) suggestion = engine::nearest_name(name, field_names(type));
  if (!suggestion.empty()) return fmt::format("{}; did you mean '{}'?", text, suggestion);
  const std::string fields = fmt::format("{}", fmt::join(field_names(type), ", "));
  if (const FieldDescriptor* alternative = find_alternative(type)) {
    const std::vector<std::string> others = alternatives_with(std::string(name), *alternative->real_containing_oneof());
    if (!others.empty()) {
      return fmt::format("{}, {}; '{}' is a field of {}", text,
                         fields.empty() ? "which has none" : "whose fields are " + fields, name,
                         fmt::join(others, ", "));
    }
  }
  const std::string place = find_path(*v1::Job::descriptor(), has_name);
  if (!place.empty()) return fmt::format("{}; its place in a job is '{}'", text, place);
  return fields.empty() ? text + "; it has no fields" : fmt::format("{}; its fields are {}", text, fields);
}

std::string no_such_value(const FieldDescriptor& field, std::string_view value) {
  std::vector<std::string> values;
  for (int i = 1; i < field.enum_type()->value_count(); ++i) values.push_back(field.enum_type()->value(i)->name());
  std::string in_capitals(value);
  for (char& c : in_capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format("'{}' is not a value of {}{} (values: {})", value, field.name(),
                     engine::did_you_mean(in_capitals, values), fmt::join(values, ", "));
}

const FieldDescriptor* find_enum_field(std::string_view name) {
  const FieldDescriptor* found = nullptr;
  find_path(*v1::Job::descriptor(), [&](const FieldDescriptor& field) {
    if (field.enum_type() == nullptr || field.name() != name) return false;
    found = &field;
    return true;
  });
  return found;
}

}  // namespace arbalest::jobs
