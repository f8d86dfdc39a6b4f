#include "checkpoint/kernel_choices_text.h"

#include <fstream>
#include <iterator>

#include "engine/base/error.h"
#include "options/text/text_format.h"

namespace arbalest::jobs {

namespace {

std::vector<engine::KernelChoice> from_proto(const v1::KernelChoices& message) {
  std::vector<engine::KernelChoice> choices;
  for (const v1::KernelChoice& choice : message.choices()) choices.push_back(jobs::from_proto(choice));
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
  return print_text(message);
}

std::vector<engine::KernelChoice> parse_kernel_choices(const SourceText& source) {
  v1::KernelChoices message;
  const SyntaxReport report = parse_text(source, TextOutline(source, *message.GetDescriptor()), message);
  if (!report.issues.empty()) {
    const SyntaxIssue& first = report.issues.front();
    throw engine::Error(
        engine::ErrorKind::kUsage,
        source.describe(first.position, first.message + "; a run's directory has such a file, kernels.txtpb"));
  }
  return from_proto(message);
}

std::vector<engine::KernelChoice> read_kernel_choices(const std::filesystem::path& path) {
  std::error_code unknown;  // ignored: opening the file then fails, too
  if (std::filesystem::is_directory(path, unknown)) {
    engine::fail(engine::ErrorKind::kUsage, "'{}' is a directory; name the kernels.txtpb of a run's directory",
                 path.string());
  }
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    engine::fail(engine::ErrorKind::kUsage, "'{}' cannot be read; name the kernels.txtpb of a run's directory",
                 path.string());
  }
  return parse_kernel_choices(SourceText(path.string(), text));
}

}  // namespace arbalest::jobs
