#include "engine/kernel_choices.h"

#include <fmt/format.h>

namespace arbalest::engine {

std::string to_text(const KernelChoice& choice) {
  std::string times;
  for (const KernelCandidate& candidate : choice.candidates) {
    if (!candidate.microseconds.has_value()) continue;
    times += fmt::format("{}{} {:.1f} us", times.empty() ? "" : ", ", candidate.name, *candidate.microseconds);
  }
  return fmt::format("{}: {}{}{}", choice.question, choice.answer, times.empty() ? "" : fmt::format(" ({})", times),
                     choice.note.empty() ? "" : "; " + choice.note);
}

}  // namespace arbalest::engine
