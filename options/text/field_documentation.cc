#include "options/text/field_documentation.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include "arbalest/v1/field.pb.h"
#include "dataflow/models/fields/field_ranges.h"
#include "engine/base/error.h"
#include "messages/text.h"
#include "options/text/field_path.h"
#include "options/text/field_suggestion.h"
#include "proto/schema_set.h"

namespace arbalest::jobs {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::SourceLocation;

namespace {

constexpr std::size_t kWidth = 100;  // characters of a line

// The schema with its comments, which the descriptors of the generated code lack.
const Descriptor& documented_job() {
  static const google::protobuf::DescriptorPool* const pool = [] {
    google::protobuf::FileDescriptorSet files;
    ARBALEST_CHECK(files.ParseFromArray(embedded::schema_set.data(), static_cast<int>(embedded::schema_set.size())));
    auto* built = new google::protobuf::DescriptorPool;  // lives as long as the program
    for (const auto& file : files.file()) ARBALEST_CHECK(built->BuildFile(file) != nullptr);
    return built;
  }();
  const Descriptor* job = pool->FindMessageTypeByName("arbalest.v1.Job");
  ARBALEST_CHECK(job != nullptr);
  return *job;
}

// The comment of a field, an enum value or a message as paragraphs. A line of the schema is not a line of the output,
// but an empty line ends a paragraph.
template <typename Described>
std::vector<std::string> paragraphs_of(const Described& described) {
  SourceLocation location;
  if (!described.GetSourceLocation(&location)) return {};
  std::vector<std::string> paragraphs(1);
  std::string_view rest = location.leading_comments;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    if (line.empty()) {
      if (!paragraphs.back().empty()) paragraphs.emplace_back();
      continue;
    }
    if (!paragraphs.back().empty()) paragraphs.back() += ' ';
    paragraphs.back() += line;
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return paragraphs;
}

// Lines of at most kWidth characters, each after `indent` spaces.
std::string wrapped(const std::vector<std::string>& paragraphs, std::size_t indent) {
  std::string text;
  const std::string margin(indent, ' ');
  for (const std::string& paragraph : paragraphs) {
    std::string line = margin;
    for (std::size_t begin = 0; begin < paragraph.size();) {
      const std::size_t end = std::min(paragraph.find(' ', begin), paragraph.size());
      const std::string word = paragraph.substr(begin, end - begin);
      if (line.size() > indent && line.size() + 1 + word.size() > kWidth) {
        text += line + "\n";
        line = margin;
      }
      if (line.size() > indent) line += ' ';
      line += word;
      begin = end + 1;
    }
    text += line + "\n";
  }
  return text;
}

// "number", "text", "message", "one of KEEP, SQRT, LINEAR", "list of text"
std::string type_text(const FieldDescriptor& field) {
  std::string type;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE: type = "message"; break;
    case FieldDescriptor::CPPTYPE_ENUM:
      for (int i = 1; i < field.enum_type()->value_count(); ++i) {
        type += (i > 1 ? ", " : "one of ") + field.enum_type()->value(i)->name();
      }
      break;
    case FieldDescriptor::CPPTYPE_STRING: type = "text"; break;
    case FieldDescriptor::CPPTYPE_BOOL: type = "true or false"; break;
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE: type = "number"; break;
    default: type = "integer";
  }
  return field.is_repeated() ? "list of " + type : type;
}

std::string first_sentence(const std::vector<std::string>& paragraphs) {
  if (paragraphs.empty()) return "";
  const std::string& text = paragraphs.front();
  const std::size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

// Returns the range and the default of a field as sentences: "In [0, 1]. Default: 0.01."
std::string options_text(const FieldDescriptor& field) {
  const v1::Field& options = field.options().GetExtension(v1::field);
  std::vector<std::string> sentences;
  if (std::string range = dataflow::range_text(field); !range.empty()) {
    if (field.is_repeated()) range = "each " + range;
    range[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(range[0])));
    sentences.push_back(options.has_unit() ? fmt::format("{} {}", range, options.unit()) : range);
  }
  if (options.has_missing()) sentences.emplace_back("Required");
  if (options.default_() == "{}") {
    if (field.real_containing_oneof() != nullptr) sentences.emplace_back("The default");
  } else if (options.has_default_()) {
    sentences.push_back(
        fmt::format("Default: {}{}{}", options.default_(), options.has_when() ? " " : "", options.when()));
  }
  if (options.has_otherwise()) sentences.push_back("Default: " + options.otherwise());
  return sentences.empty() ? "" : fmt::format("{}.", fmt::join(sentences, ". "));
}

// The comment of a field, and that of its message, which often says more.
std::vector<std::string> comment_of(const FieldDescriptor& field) {
  std::vector<std::string> paragraphs = paragraphs_of(field);
  if (field.message_type() != nullptr) {
    for (std::string& paragraph : paragraphs_of(*field.message_type())) paragraphs.push_back(std::move(paragraph));
  }
  return paragraphs;
}

std::string fields_text(const Descriptor& type) {
  std::vector<std::vector<std::string>> rows;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string sentence = first_sentence(comment_of(field));
    const std::string options = options_text(field);
    rows.push_back(
        {"  " + field.name(), type_text(field), sentence + (sentence.empty() || options.empty() ? "" : " ") + options});
  }
  return rows.empty() ? "" : "\nFields:\n" + table(rows, 3) + "\n";
}

std::string alternatives_text(const FieldDescriptor& field) {
  const google::protobuf::OneofDescriptor* oneof = field.real_containing_oneof();
  if (oneof == nullptr) return "";
  std::string names;
  for (int i = 0; i < oneof->field_count(); ++i) {
    if (oneof->field(i) != &field) names += (names.empty() ? "" : ", ") + oneof->field(i)->name();
  }
  return "\n" + wrapped({fmt::format("Excludes the other choices of {}: {}.", oneof->name(), names)}, 0);
}

std::string values_text(const FieldDescriptor& field) {
  if (field.enum_type() == nullptr) return "";
  std::string text;
  for (int i = 1; i < field.enum_type()->value_count(); ++i) {
    const google::protobuf::EnumValueDescriptor& value = *field.enum_type()->value(i);
    const std::vector<std::string> paragraphs = paragraphs_of(value);
    text += fmt::format("  {}\n{}", value.name(), wrapped(paragraphs, 4));
  }
  return "\nValues:\n" + text;
}

std::string describe(const std::string& path, const FieldDescriptor& field) {
  std::vector<std::string> paragraphs = comment_of(field);
  if (std::string options = options_text(field); !options.empty()) paragraphs.push_back(std::move(options));
  std::string text = fmt::format("{}: {}\n\n{}", path, type_text(field), wrapped(paragraphs, 0));
  text += values_text(field) + alternatives_text(field);
  if (field.message_type() != nullptr) text += fields_text(*field.message_type());
  return text;
}

const FieldDescriptor* find_field(const std::vector<FieldPathPart>& path) {
  const Descriptor* type = &documented_job();
  const FieldDescriptor* field = nullptr;
  for (const FieldPathPart& part : path) {
    field = type == nullptr ? nullptr : type->FindFieldByName(part.name);
    if (field == nullptr) return nullptr;
    type = field->message_type();
  }
  return field;
}

std::vector<std::string> names_of(const Descriptor& type) {
  std::vector<std::string> names;
  names.reserve(static_cast<std::size_t>(type.field_count()));
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

// Adds the names of all fields of `type` and below, each once.
void collect_names(const Descriptor& type, std::set<std::string>& names) {
  for (int i = 0; i < type.field_count(); ++i) {
    names.insert(type.field(i)->name());
    if (type.field(i)->message_type() != nullptr) collect_names(*type.field(i)->message_type(), names);
  }
}

// Calls `visit` with all fields and their paths, from the top of the job down. The schema has no recursive message.
void visit_fields(const Descriptor& type, const std::string& prefix,
                  const std::function<void(const std::string&, const FieldDescriptor&)>& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    visit(path, field);
    if (field.message_type() != nullptr) visit_fields(*field.message_type(), path + ".", visit);
  }
}

std::vector<std::string> paths_ending_with(std::string_view end) {
  const std::string behind_dot = fmt::format(".{}", end);
  std::vector<std::string> paths;
  visit_fields(documented_job(), "", [&](const std::string& path, const FieldDescriptor&) {
    if (path == end || path.ends_with(behind_dot)) paths.push_back(path);
  });
  return paths;
}

std::vector<std::string> paths_with_value(std::string_view value) {
  std::vector<std::string> paths;
  visit_fields(documented_job(), "", [&](const std::string& path, const FieldDescriptor& field) {
    const auto* type = field.enum_type();
    if (type != nullptr && type->FindValueByName(std::string(value)) != nullptr) paths.push_back(path);
  });
  return paths;
}

// `what`: "the name fraction"
std::string describe_all(const std::vector<std::string>& paths, const std::string& what) {
  if (paths.empty()) return "";
  if (paths.size() == 1) return describe(paths.front(), *find_field(parse_field_path(paths.front())));
  std::string text = fmt::format("Fields with {}:\n", what);
  for (const std::string& each : paths) text += "  " + each + "\n";
  return text;
}

}  // namespace

std::string field_documentation(std::string_view field) {
  const std::vector<FieldPathPart> path = parse_field_path(field);
  if (path.empty()) return "";
  if (const FieldDescriptor* found = find_field(path)) return describe(std::string(field), *found);
  const std::string named = describe_all(paths_ending_with(field), fmt::format("the name {}", field));
  return named.empty() ? describe_all(paths_with_value(field), fmt::format("the value {}", field)) : named;
}

std::string nearest_field(std::string_view field) {
  const std::vector<FieldPathPart> path = parse_field_path(field);
  if (path.size() == 1) {
    std::set<std::string> names;
    collect_names(documented_job(), names);
    return suggested_name(path.front().name, std::vector<std::string>(names.begin(), names.end()));
  }
  const Descriptor* type = &documented_job();
  std::string nearest;
  for (const FieldPathPart& part : path) {
    if (type == nullptr) return nearest;  // a number or text has no fields
    const FieldDescriptor* found = type->FindFieldByName(part.name);
    const std::string name = found != nullptr ? part.name : suggested_name(part.name, names_of(*type));
    if (name.empty()) return "";
    nearest += (nearest.empty() ? "" : ".") + name;
    type = type->FindFieldByName(name)->message_type();
  }
  return nearest;
}

}  // namespace arbalest::jobs
