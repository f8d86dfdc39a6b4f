#include "options/text/overrides.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "options/text/field_path.h"
#include "options/text/field_suggestion.h"
#include "options/text/octal_numbers.h"
#include "options/text/schema_names.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;

namespace {

constexpr std::string_view kDefault = "default";

bool is_message(const FieldDescriptor& field) { return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

const FieldDescriptor& find_field(const Message& parent, const FieldPathPart& part) {
  const FieldDescriptor* field = parent.GetDescriptor()->FindFieldByName(part.name);
  if (field == nullptr) fail(ErrorKind::kUsage, "{}", no_such_field(*parent.GetDescriptor(), part.name));
  if (part.index < 0) return *field;
  if (!field->is_repeated()) fail(ErrorKind::kUsage, "{} is not a list", part.name);
  const int size = parent.GetReflection()->FieldSize(parent, field);
  if (part.index >= size)
    fail(ErrorKind::kUsage, "{} has {} elements, counted from 0; there is no [{}]", part.name, size, part.index);
  return *field;
}

Message& descend(Message& parent, const FieldPathPart& part) {
  const FieldDescriptor& field = find_field(parent, part);
  if (!is_message(field)) fail(ErrorKind::kUsage, "{} is a value and has no fields", part.name);
  const Reflection& reflection = *parent.GetReflection();
  if (!field.is_repeated()) return *reflection.MutableMessage(&parent, &field);
  if (part.index < 0) fail(ErrorKind::kUsage, "{} is a list; name the element, as in {}[0]", part.name, part.name);
  return *reflection.MutableRepeatedMessage(&parent, &field, part.index);
}

// Whether the word `default` cannot be a value of the field.
bool can_be_default(const FieldDescriptor& field) {
  return !field.is_repeated() && field.cpp_type() != FieldDescriptor::CPPTYPE_STRING;
}

// Whether the value is text that needs no quotes on the command line.
bool is_bare_text(const FieldDescriptor& field, std::string_view value) {
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_STRING) return false;
  if (value.empty()) return true;
  return value[0] != '"' && value[0] != '\'' && !(field.is_repeated() && value[0] == '[');
}

// `field: value` as it stands within the braces of a setting's value; "" for the field's default.
std::string written_in_braces(const FieldDescriptor& field, const std::string& value) {
  if (value == kDefault && can_be_default(field)) return "";
  return fmt::format("{}: {}", field.name(), is_bare_text(field, value) ? fmt::format("\"{}\"", value) : value);
}

// Refuses a field within an alternative that the job does not have: setting it would replace the one that it has.
// parts[index] names the alternative in `parent`; `value`: of the last part. Other mistakes are left to descend().
void check_chosen(const Message& parent, const std::vector<FieldPathPart>& parts, std::size_t index,
                  const std::string& value) {
  const FieldDescriptor* field = parent.GetDescriptor()->FindFieldByName(parts[index].name);
  const OneofDescriptor* oneof = field == nullptr ? nullptr : field->real_containing_oneof();
  if (oneof == nullptr || !is_message(*field)) return;
  const FieldDescriptor* inner = field->message_type()->FindFieldByName(parts[index + 1].name);
  const FieldDescriptor* chosen = parent.GetReflection()->GetOneofFieldDescriptor(parent, oneof);
  if (inner == nullptr || chosen == nullptr || chosen == field) return;
  std::string around;
  for (const FieldPathPart& part : std::span(parts).first(index)) around += to_string(part) + ".";
  const std::string body = index + 2 == parts.size() ? written_in_braces(*inner, value) : "...";
  fail(ErrorKind::kUsage, "the job has {} and not {}; to replace it, write {}{}={}{}", chosen->name(), field->name(),
       around, oneof->name(), field->name(), body.empty() ? "" : fmt::format("{{{}}}", body));
}

// A message on the command line, written as `name` or `name{...}`; `body` is the text behind the name, "{...}".
struct NamedMessage {
  std::string name;
  std::string body;
};

// Returns nothing if `value` has another form.
std::optional<NamedMessage> parse_named_message(std::string_view value) {
  const auto is_in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  const auto end = std::ranges::find_if_not(value, is_in_name);
  const std::string_view name(value.begin(), end);
  if (name.empty() || name[0] == '-' || (name[0] >= '0' && name[0] <= '9')) return std::nullopt;
  std::string_view body(end, value.end());
  if (body.empty()) return NamedMessage{std::string(name), "{}"};
  const std::size_t brace = body.find_first_not_of(' ');
  if (brace == std::string_view::npos || body[brace] != '{') return std::nullopt;
  return NamedMessage{std::string(name), std::string(body.substr(brace))};
}

std::vector<std::string> alternatives_of(const OneofDescriptor& oneof) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(oneof.field_count()));
  for (int i = 0; i < oneof.field_count(); ++i) names.push_back(oneof.field(i)->name());
  return names;
}

// Refuses a `name` that is not in `alternatives`, the alternatives of `what`, or is not a message.
void check_alternative(const Descriptor& type, const std::vector<std::string>& alternatives, const std::string& what,
                       const std::string& name) {
  if (std::ranges::find(alternatives, name) == alternatives.end()) {
    fail(ErrorKind::kUsage, "'{}' is not an alternative of {}{} (alternatives: {})", name, what,
         suggestion(name, alternatives), fmt::join(alternatives, ", "));
  }
  if (is_message(*type.FindFieldByName(name))) return;
  fail(ErrorKind::kUsage, "{} takes a value: set the field by its own path, which ends with .{}=VALUE", name, name);
}

// Expands `synchronization=sma` to `synchronization={sma {}}`. Other values are returned unchanged.
std::string expand_alternative(const FieldDescriptor& field, const std::string& value) {
  if (!is_message(field)) return value;
  const Descriptor& type = *field.message_type();
  std::vector<std::string> alternatives;
  for (int i = 0; i < type.real_oneof_decl_count(); ++i) {
    for (std::string& name : alternatives_of(*type.oneof_decl(i))) alternatives.push_back(std::move(name));
  }
  const std::optional<NamedMessage> named = parse_named_message(value);
  if (alternatives.empty() || !named) return value;
  check_alternative(type, alternatives, field.name(), named->name);
  return fmt::format("{{{} {}}}", named->name, named->body);
}

// A setting that names a oneof, as in `learning_rate.schedule=cosine`, sets one of its alternatives and keeps the
// fields outside the oneof: `learning_rate.cosine={}`. Returns false if `last` names no oneof of `parent`.
bool choose_alternative(const Message& parent, FieldPathPart& last, std::string& value) {
  const Descriptor& type = *parent.GetDescriptor();
  const OneofDescriptor* oneof = type.FindOneofByName(last.name);
  if (oneof == nullptr || last.index >= 0 || type.FindFieldByName(last.name) != nullptr) return false;
  const std::vector<std::string> alternatives = alternatives_of(*oneof);
  const std::optional<NamedMessage> named = parse_named_message(value);
  if (!named) {
    fail(ErrorKind::kUsage, "{} takes the name of an alternative, as in {}={} (alternatives: {})", last.name, last.name,
         alternatives.front(), fmt::join(alternatives, ", "));
  }
  check_alternative(type, alternatives, last.name, named->name);
  last.name = named->name;
  value = named->body;
  return true;
}

// Returns a message of the type of `parent` with nothing but `field` = `value`.
std::unique_ptr<Message> parse_value(const Message& parent, const FieldDescriptor& field, const std::string& value) {
  std::unique_ptr<Message> parsed(parent.New());
  const Reflection& reflection = *parsed->GetReflection();
  if (is_bare_text(field, value)) {
    if (field.is_repeated()) {
      reflection.AddString(parsed.get(), &field, value);
    } else {
      reflection.SetString(parsed.get(), &field, value);
    }
    return parsed;
  }
  if (value.empty()) fail(ErrorKind::kUsage, "the value is missing");
  const SourceText text("", field.name() + ": " + value);
  const TextOutline outline(text, *parent.GetDescriptor());
  std::vector<std::string> problems;
  for (const SyntaxIssue& issue : parse_text(text, outline, *parsed).issues) problems.push_back(issue.message);
  if (problems.empty()) {  // numbers are then well formed
    for (const OctalNumber& number : octal_numbers(text, outline)) problems.push_back(number.message);
  }
  if (!problems.empty()) fail(ErrorKind::kUsage, "{}", fmt::join(problems, "; "));
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*parsed, &fields);
  if (fields.size() > 1 || (fields.size() == 1 && fields[0] != &field))
    fail(ErrorKind::kUsage, "VALUE must be a single value");
  return parsed;
}

// Moves the element that was appended to `field` to `index`, where it replaces the old one.
void replace_element(Message& message, const FieldDescriptor& field, int index, int old_size) {
  const Reflection& reflection = *message.GetReflection();
  if (reflection.FieldSize(message, &field) != old_size + 1) fail(ErrorKind::kUsage, "one element takes one value");
  reflection.SwapElements(&message, &field, index, old_size);
  reflection.RemoveLast(&message, &field);
}

}  // namespace

Overrides::Overrides(std::span<const std::string> settings, v1::Job& job) {
  for (const std::string& setting : settings) {
    v1::Job changed = job;
    try {
      apply(setting, changed);
      job = std::move(changed);
    } catch (const engine::Error& error) {
      issues_.push_back({setting, error.what()});
    }
  }
}

void Overrides::apply(const std::string& setting, v1::Job& job) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos) fail(ErrorKind::kUsage, "expected path=value, as in training.batch_size=16");
  std::string path = setting.substr(0, equals);
  std::string value = setting.substr(equals + 1);
  std::vector<FieldPathPart> parts = parse_field_path(path);
  if (parts.empty()) fail(ErrorKind::kUsage, "'{}' is not the name of a field, as training.batch_size is", path);

  Message* parent = &job;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    check_chosen(*parent, parts, i, value);
    parent = &descend(*parent, parts[i]);
  }
  if (choose_alternative(*parent, parts.back(), value)) {
    const std::string around = parent_path(path);
    path = (around.empty() ? "" : around + ".") + parts.back().name;
  }
  const FieldDescriptor& field = find_field(*parent, parts.back());
  const Reflection& reflection = *parent->GetReflection();
  const int index = parts.back().index;
  if (value == kDefault && can_be_default(field)) {
    reflection.ClearField(parent, &field);
    origins_.insert_or_assign(path, setting);
    return;
  }
  const std::unique_ptr<Message> parsed = parse_value(*parent, field, expand_alternative(field, value));

  if (!field.is_repeated() || (index < 0 && replaced_lists_.insert(path).second)) {
    reflection.ClearField(parent, &field);
  }
  const int old_size = field.is_repeated() ? reflection.FieldSize(*parent, &field) : 0;
  parent->MergeFrom(*parsed);
  if (index >= 0) {
    replace_element(*parent, field, index, old_size);
  } else if (field.is_repeated()) {
    for (int i = old_size; i < reflection.FieldSize(*parent, &field); ++i) {
      origins_.insert_or_assign(fmt::format("{}[{}]", path, i), setting);
    }
  }
  origins_.insert_or_assign(path, setting);
}

const std::string* Overrides::origin(const std::string& path) const {
  for (std::string at = path; !at.empty(); at = parent_path(at)) {
    if (const auto found = origins_.find(at); found != origins_.end()) return &found->second;
  }
  return nullptr;
}

bool Overrides::missed(const std::string& path) const {
  const auto is_within = [](const std::string& inner, const std::string& outer) {
    std::string at = inner;
    while (!at.empty() && at != outer) at = parent_path(at);
    return !at.empty();
  };
  return std::ranges::any_of(issues_, [&](const OverrideIssue& issue) {
    const std::string meant = issue.setting.substr(0, issue.setting.find('='));
    return is_within(path, meant) || parent_path(meant) == path;
  });
}

}  // namespace arbalest::jobs
