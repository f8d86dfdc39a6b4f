// Rules of the schema: buf's STANDARD rules, except for short names of enum values.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <set>

#include <google/protobuf/message.h>

#include "arbalest/v1/checkpoint.pb.h"
#include "arbalest/v1/field.pb.h"
#include "arbalest/v1/job.pb.h"
#include "arbalest/v1/run_state.pb.h"
#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"
#include "tests/support/catch.h"
#include "tests/support/source_directory.h"

namespace arbalest {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// "SoftmaxCrossEntropy"
bool is_title_case(const std::string& name) {
  return is_upper(name[0]) && std::ranges::all_of(name, [](char c) { return is_upper(c) || is_lower_or_digit(c); });
}

// "max_pool"
bool is_snake_case(const std::string& name) {
  return !name.starts_with('_') && !name.ends_with('_') && name.find("__") == std::string::npos &&
         std::ranges::all_of(name, [](char c) { return c == '_' || is_lower_or_digit(c); });
}

// "RateScaling" -> "RATE_SCALING"
std::string in_capitals(const std::string& title_case) {
  std::string result;
  for (const char c : title_case) {
    if (is_upper(c) && !result.empty()) result += '_';
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

void check_enum(const EnumDescriptor& type) {
  INFO(type.full_name());
  CHECK(is_title_case(type.name()));
  // Values have no prefix, so their scope must be a message.
  CHECK(type.containing_type() != nullptr);
  REQUIRE(type.value_count() > 1);
  CHECK(type.value(0)->number() == 0);
  CHECK(type.value(0)->name() == in_capitals(type.name()) + "_UNSPECIFIED");
  for (int i = 1; i < type.value_count(); ++i) {
    CHECK(std::ranges::all_of(type.value(i)->name(), [](char c) { return is_upper(c) || is_digit(c) || c == '_'; }));
  }
}

// The options of a field must agree with each other: a default lies in the range.
void check_options(const FieldDescriptor& field) {
  const v1::Field& options = field.options().GetExtension(v1::field);
  const bool has_low = options.has_min() || options.has_above();
  const bool has_high = options.has_max() || options.has_below();
  CHECK((has_low || !has_high));
  CHECK_FALSE((options.has_min() && options.has_above()));
  CHECK_FALSE((options.has_max() && options.has_below()));
  if (has_high) CHECK(options.min() + options.above() < options.max() + options.below());
  CHECK(options.has_default_() + options.has_otherwise() + options.has_missing() <= 1);
  CHECK((options.has_default_() || !options.has_when()));
  if (!options.has_default_()) return;
  const auto* prototype = google::protobuf::MessageFactory::generated_factory()->GetPrototype(field.containing_type());
  const std::unique_ptr<google::protobuf::Message> message(prototype->New());
  dataflow::fill_field(*message, field.name());
  dataflow::FieldIssues issues;
  dataflow::check_fields(*message, "", issues);
  if (field.message_type() == nullptr) CHECK_FALSE(issues.has_within(field.name()));
}

void check_message(const Descriptor& type) {
  INFO(type.full_name());
  CHECK(is_title_case(type.name()));
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    INFO(field.name());
    CHECK(is_snake_case(field.name()));
    // A missing field must differ from a zero.
    CHECK((field.is_repeated() || field.has_presence()));
    check_options(field);
  }
  for (int i = 0; i < type.nested_type_count(); ++i) check_message(*type.nested_type(i));
  for (int i = 0; i < type.enum_type_count(); ++i) check_enum(*type.enum_type(i));
}

// Collects `file` and all its imports, but not protobuf's own files.
void collect(const FileDescriptor& file, std::set<const FileDescriptor*>& files) {
  if (file.package() == "google.protobuf" || !files.insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) collect(*file.dependency(i), files);
}

// Returns the depth of nested messages below `type`. The parser allows 64.
int depth(const Descriptor& type, std::set<const Descriptor*> above = {}) {
  REQUIRE(above.insert(&type).second);  // a recursive message would allow jobs of any depth
  int deepest = 0;
  for (int i = 0; i < type.field_count(); ++i) {
    const Descriptor* message = type.field(i)->message_type();
    if (message != nullptr) deepest = std::max(deepest, depth(*message, above));
  }
  return deepest + 1;
}

}  // namespace

TEST_CASE("the schema follows its rules") {
  std::set<const FileDescriptor*> files;
  collect(*v1::Job::descriptor()->file(), files);
  collect(*v1::CheckpointManifest::descriptor()->file(), files);
  collect(*v1::RunState::descriptor()->file(), files);
  std::set<std::string> names;
  for (const FileDescriptor* file : files) {
    INFO(file->name());
    names.insert(file->name());
    CHECK(file->package() == "arbalest.v1");
    CHECK(std::filesystem::path(file->name()).parent_path() == "arbalest/v1");
    CHECK(file->enum_type_count() == 0);
    for (int i = 0; i < file->message_type_count(); ++i) check_message(*file->message_type(i));
  }
  std::set<std::string> on_disk;
  for (const auto& entry : std::filesystem::directory_iterator(tests::source_directory() + "/proto/arbalest/v1")) {
    on_disk.insert("arbalest/v1/" + entry.path().filename().string());
  }
  CHECK(names == on_disk);
}

TEST_CASE("no message of the schema contains itself") { CHECK(depth(*v1::Job::descriptor()) < 16); }

}  // namespace arbalest
