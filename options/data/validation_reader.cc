#include "options/data/validation_reader.h"

#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/formats/cifar.h"
#include "dataflow/models/fields/field_ranges.h"
#include "messages/text.h"
#include "options/data/validation_check.h"

namespace arbalest::jobs {

namespace {

// A field that names a file of the validation set.
struct FileField {
  std::string field;
  bool is_given = false;
  std::string name;
  // Files of the other sets with the same content; "": none may be confused with it.
  std::string training = {};
  std::string test = {};
};

// Returns the fields of the dataset that begin with "validation": one for the examples and, for some kinds, one for the
// labels. The training and test sets' files of the examples are in the fields that begin with "train" and "test"
// instead; those of MNIST's and CIFAR's sets have fixed names.
std::vector<FileField> fields_of(const v1::Data& data, const KnownDataset& known) {
  const google::protobuf::FieldDescriptor* of = source_field(data);
  const google::protobuf::Message& source = data.GetReflection()->GetMessage(data, of);
  const google::protobuf::Reflection& reflection = *source.GetReflection();
  const google::protobuf::Descriptor& type = *source.GetDescriptor();
  constexpr std::string_view kPrefix = "validation";
  std::vector<FileField> fields;
  for (int i = 0; i < type.field_count(); ++i) {
    const std::string& name = type.field(i)->name();
    if (!name.starts_with(kPrefix)) continue;
    const auto other = [&](const std::string& split) -> std::string {
      const auto* field = fields.empty() ? type.FindFieldByName(split + name.substr(kPrefix.size())) : nullptr;
      return field == nullptr ? "" : reflection.GetString(source, field);
    };
    fields.push_back({name, reflection.HasField(source, type.field(i)), reflection.GetString(source, type.field(i)),
                      other("train"), other("test")});
  }
  switch (known.kind) {
    case DataOptions::Kind::kIdx:
      fields.front().training = "train-images-idx3-ubyte";
      fields.front().test = "t10k-images-idx3-ubyte";
      break;
    case DataOptions::Kind::kCifar10:  // a file of its training set may validate: the others remain
      fields.front().test = "test_batch.bin";
      break;
    case DataOptions::Kind::kCifar100:
      fields.front().training = "train.bin";
      fields.front().test = "test.bin";
      break;
    default: break;
  }
  return fields;
}

// Whether both are the name of the same file, such as "val" and "./val/", or "images" and "images.gz".
bool is_same(const std::string& a, const std::string& b) {
  const auto plain = [](const std::string& name) {
    std::string text = std::filesystem::path(name).lexically_normal().string();
    if (text.ends_with('/')) text.pop_back();
    if (text.ends_with(".gz")) text.resize(text.size() - 3);
    return text;
  };
  return !b.empty() && plain(a) == plain(b);
}

// Returns what is wrong with the name; "" if nothing is.
std::string problem_of(const FileField& of) {
  if (of.name.empty()) return fmt::format("{} is empty; leave it out if the validation set has no files", of.field);
  if (is_same(of.name, of.training)) {
    return fmt::format(
        "{} names the training set, '{}': the run would be judged by examples that it has learned; name other files, "
        "or split a part off by data.validation.fraction",
        of.field, of.name);
  }
  if (is_same(of.name, of.test)) {
    return fmt::format(
        "{} names the test set, '{}', but the test set must not choose the model; name other files, or split a part "
        "off the "
        "training set by data.validation.fraction",
        of.field, of.name);
  }
  return "";
}

// Returns none if `data` names no files of a validation set, or wrong ones.
std::optional<DataFiles> read_files(const v1::Data& data, const KnownDataset& known, dataflow::FieldIssues& issues) {
  const std::vector<FileField> fields = fields_of(data, known);
  const FileField* given = nullptr;
  for (const FileField& of : fields) {
    if (of.is_given && given == nullptr) given = &of;
  }
  if (given == nullptr) return std::nullopt;
  const std::string source = fmt::format("data.{}.", known.name);
  if (data.has_validation()) {
    issues.add("data.validation",
               fmt::format("validation splits a part off the training set, and {}{} names files of a validation set; "
                           "remove one of them",
                           source, given->field));
    return std::nullopt;
  }
  bool is_sound = true;
  for (const FileField& of : fields) {
    std::string problem = of.is_given ? problem_of(of)
                                      : fmt::format("{} is missing: the file that belongs to {}, '{}'", of.field,
                                                    given->field, given->name);
    is_sound &= problem.empty();
    issues.add(source + of.field, std::move(problem));
  }
  if (!is_sound) return std::nullopt;
  return DataFiles{fields.front().name, fields.size() > 1 ? fields.back().name : ""};
}

// Only the files tell the size of a validation set of its own, unless it is one of the files of CIFAR-10's training
// set.
void set_sizes_of_files(const KnownDataset& known, DataOptions& options) {
  options.validation_examples.reset();
  if (known.kind != DataOptions::Kind::kCifar10) return;
  if (!dataflow::is_training_file(dataflow::CifarVersion::k10, options.validation_files->examples)) return;
  options.validation_examples = dataflow::kCifar10FileExamples;
  *options.training_examples -= dataflow::kCifar10FileExamples;
}

// Subtracts the validation examples from the known number of training examples.
void read_split(const v1::Validation& validation, const KnownDataset& known, DataOptions& options,
                dataflow::FieldIssues& issues) {
  options.validation = {{validation.fraction(), validation.seed()}, {}};
  if (!validation.has_fraction()) return;  // an issue of its own
  const std::vector<std::int64_t>& sizes = known.class_sizes;
  const dataflow::ValidationRule& rule = options.validation->rule;
  std::string problem = dataflow::field_problem(validation, "fraction");
  if (!problem.empty()) problem += fraction_hint(rule.fraction, 0.5);
  if (problem.empty() && !sizes.empty()) problem = validation_problem(rule, sizes);
  issues.add(kFractionPath, problem);
  if (!problem.empty() || sizes.empty()) return;
  options.validation_examples = validation_size(rule, sizes);
  *options.training_examples -= *options.validation_examples;
}

}  // namespace

void read_validation(const v1::Data& data, const KnownDataset& known, DataOptions& options,
                     dataflow::FieldIssues& issues) {
  const std::vector<std::int64_t>& sizes = known.class_sizes;
  if (!sizes.empty()) {
    options.training_examples = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    options.validation_examples = 0;
  }
  options.validation_files = read_files(data, known, issues);
  if (options.validation_files) {
    set_sizes_of_files(known, options);
  } else if (data.has_validation()) {
    read_split(data.validation(), known, options, issues);
  }
}

}  // namespace arbalest::jobs
