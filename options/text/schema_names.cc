#include "options/text/schema_names.h"

#include <cctype>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arbalest/v1/job.pb.h"
#include "engine/base/nearest_name.h"
#include "options/text/field_suggestion.h"

namespace arbalest::jobs {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

namespace {

std::vector<std::string> field_names(const Descriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

// The path from `type` to the first field for which `matches` holds, "training.batch_size"; "" if there is no such
// field. The schema has no recursive message.
template <typename Predicate>
std::string find_path(const Descriptor& type, const Predicate& matches) {
  for (int i = 0; i < type.field_count(); ++i) {
    if (matches(*type.field(i))) return type.field(i)->name();
  }
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() == nullptr) continue;
    const std::string path = find_path(*field.message_type(), matches);
    if (!path.empty()) return field.name() + "." + path;
  }
  return "";
}

// Paths from `type` to all fields of that name outside of lists.
void collect_paths(const Descriptor& type, std::string_view name, const std::string& prefix,
                   std::vector<std::string>& paths) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.name() == name) paths.push_back(prefix + field.name());
    if (field.message_type() != nullptr && !field.is_repeated()) {
      collect_paths(*field.message_type(), name, prefix + field.name() + ".", paths);
    }
  }
}

// The path from `type` to the only field of that name outside of lists; "" if there is none, or several, of which the
// one that was meant is not known.
std::string only_path(const Descriptor& type, std::string_view name) {
  std::vector<std::string> paths;
  collect_paths(type, name, "", paths);
  return paths.size() == 1 ? paths.front() : "";
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

// The alternatives of the oneof `name` of this type; empty if there is no such oneof.
std::vector<std::string> alternatives_of(const Descriptor& type, std::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    const google::protobuf::OneofDescriptor& oneof = *type.oneof_decl(i);
    for (int k = 0; oneof.name() == name && k < oneof.field_count(); ++k) names.push_back(oneof.field(k)->name());
  }
  return names;
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
  const std::vector<std::string> alternatives = alternatives_of(type, name);
  if (!alternatives.empty()) return fmt::format("{}; write one of these: {}", text, fmt::join(alternatives, ", "));
  const std::string of_kinds = field_of_kinds(type, std::string(name));
  if (!of_kinds.empty()) return fmt::format("{}; did you mean {}?", text, of_kinds);
  std::string meant = only_path(type, name);
  if (meant.empty()) meant = suggested_name(name, field_names(type));
  if (!meant.empty()) return fmt::format("{}; did you mean '{}'?", text, meant);
  const std::string fields = fmt::format("{}", fmt::join(field_names(type), ", "));
  if (const FieldDescriptor* alternative = find_alternative(type)) {
    const std::vector<std::string> others = alternatives_with(std::string(name), *alternative->real_containing_oneof());
    if (!others.empty()) {
      return fmt::format("{}, {}; '{}' is a field of {}", text,
                         fields.empty() ? "which has none" : "whose fields are " + fields, name,
                         fmt::join(others, ", "));
    }
  }
  std::string place = known_place(name);
  if (place.empty()) place = only_path(*v1::Job::descriptor(), name);
  if (!place.empty() && place != describe_type(type)) return fmt::format("{}; its path in a job is '{}'", text, place);
  return fields.empty() ? text + "; it has no fields" : fmt::format("{}; its fields are {}", text, fields);
}

namespace {

// The fields of the message `name` that a number in its place means; "" if there are none, or `word` is no number.
std::string fields_of_number(std::string_view name, std::string_view word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word.front())) == 0) return "";
  if (name == "learners") return fmt::format("per_device {{ fixed: {} }}", word);
  if (name == "per_device") return fmt::format("fixed: {}", word);
  if (name == "learning_rate") return fmt::format("base: {}", word);
  if (name == "validation") return fmt::format("fraction: {}", word);
  return "";
}

std::string_view without_quotes(std::string_view word) {
  const bool is_quoted =
      word.size() > 2 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front();
  return is_quoted ? word.substr(1, word.size() - 2) : word;
}

}  // namespace

std::string no_message(const FieldDescriptor& field, std::string_view word) {
  const Descriptor& type = *field.message_type();
  const std::string fields = fields_of_number(field.name(), word);
  if (!fields.empty()) {
    return fmt::format("{} is a message, and not a number; did you mean {} {{ {} }}?", field.name(), field.name(),
                       fields);
  }
  if (word == "[") {
    const bool is_count = field.name() == "learners" || field.name() == "per_device";
    const std::string example = fields_of_number(field.name(), is_count ? "1" : "0.1");
    return fmt::format("{} is a message, and not a list; write {} {{ {} }}", field.name(), field.name(),
                       example.empty() ? "..." : example);
  }
  const std::string meant = suggested_name(without_quotes(word), field_names(type));
  const FieldDescriptor* inner = meant.empty() ? nullptr : type.FindFieldByName(meant);
  if (inner == nullptr || inner->message_type() == nullptr) {
    return fmt::format("{} is a message: expected '{{' and its fields, not {}", field.name(), word);
  }
  return fmt::format("{} is a message, and not {}; did you mean {} {{ {} {{}} }}?", field.name(), word, field.name(),
                     meant);
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
