#include "checkpoint/kernel_choices_text.h"

#include <fstream>
#include <iterator>
#include <optional>

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace {

// The caller reports that a text is malformed.
class Ignore final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

std::optional<std::vector<engine::KernelChoice>> try_to_parse(const std::string& text) {
  v1::KernelChoices message;
  Ignore ignore;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&ignore);
  if (!parser.ParseFromString(text, &message)) return std::nullopt;
  std::vector<engine::KernelChoice> choices;
  for (const v1::KernelChoice& choice : message.choices()) choices.push_back(from_proto(choice));
  return choices;
}

}  // namespace

v1::KernelChoice to_proto(const engine::KernelChoice& choice) {
  v1::KernelChoice message;
  message.set_question(choice.question);
  message.set_answer(choice.answer);
  for (const engine::KernelCandidate& candidate : choice.candidates) {
    v1::KernelChoice::Candidate& added = *message.add_candidates();
    added.set_name(candidate.name);
    if (candidate.microseconds) added.set_microseconds(*candidate.microseconds);
  }
  if (!choice.note.empty()) message.set_note(choice.note);
  return message;
}

engine::KernelChoice from_proto(const v1::KernelChoice& message) {
  engine::KernelChoice choice{.question = message.question(), .answer = message.answer(), .note = message.note()};
  for (const v1::KernelChoice::Candidate& candidate : message.candidates()) {
    choice.candidates.push_back({.name = candidate.name()});
    if (candidate.has_microseconds()) choice.candidates.back().microseconds = candidate.microseconds();
  }
  return choice;
}

std::string kernel_choices_text(std::span<const engine::KernelChoice> choices) {
  v1::KernelChoices message;
  for (const engine::KernelChoice& choice : choices) *message.add_choices() = to_proto(choice);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(message, &text)) {
    engine::fail(engine::ErrorKind::kInternal, "internal error: the choices of kernels cannot be printed");
  }
  return text;
}

std::vector<engine::KernelChoice> parse_kernel_choices(const std::string& text) {
  std::optional<std::vector<engine::KernelChoice>> choices = try_to_parse(text);
  if (!choices) engine::fail(engine::ErrorKind::kInternal, "internal error: choices of kernels cannot be read");
  return std::move(*choices);
}

std::vector<engine::KernelChoice> read_kernel_choices(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::optional<std::vector<engine::KernelChoice>> choices = file ? try_to_parse(text) : std::nullopt;
  if (!choices) {
    engine::fail(engine::ErrorKind::kUsage,
                 "'{}' {}; name the kernels.txtpb of a run's directory, or leave --kernels out", path.string(),
                 file ? "holds no choices of kernels" : "cannot be read");
  }
  return std::move(*choices);
}

}  // namespace arbalest::jobs
