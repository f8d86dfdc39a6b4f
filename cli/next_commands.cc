#include "cli/next_commands.h"

#include <string_view>

#include <fmt/format.h>

#include "checkpoint/job/continuation.h"
#include "messages/text.h"

namespace arbalest::cli {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

// `arbalest train` with the settings of `command`, without those that `more` replaces, and with `more`.
std::vector<std::string> train_words(const TrainCommand& command, const std::vector<std::string>& more) {
  std::vector<std::string> words = {command.program, "train", command.job};
  for (const std::string& setting : jobs::settings_with(command.settings, more)) {
    words.insert(words.end(), {"--set", setting});
  }
  words.insert(words.end(), command.options.begin(), command.options.end());
  return words;
}

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=:,+@%-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string resume_command(const TrainCommand& command, const std::string& directory,
                           const std::vector<std::string>& settings) {
  std::vector<std::string> words = train_words(command, settings);
  words.insert(words.end(), {"--output", directory, "--resume=auto"});
  return joined(words);
}

std::string next_commands(const TrainCommand& command, const std::string& directory, const jobs::NextSteps& steps) {
  std::vector<std::vector<std::string>> rows;
  if (steps.resume) rows.push_back({"train on:", resume_command(command, directory, *steps.resume)});
  if (steps.anew) rows.push_back({"train anew:", joined(train_words(command, *steps.anew))});
  std::vector<std::string> chosen;
  if (!steps.checkpoint.empty()) chosen = {"--checkpoint", steps.checkpoint};
  const auto add = [&](const char* label, const char* name, const std::string& input) {
    std::vector<std::string> words = {command.program, name, directory};
    if (!input.empty()) words.push_back(input);
    words.insert(words.end(), chosen.begin(), chosen.end());
    rows.push_back({label, joined(words)});
  };
  if (steps.evaluates) add("evaluate:", "evaluate", "");
  if (!steps.input.empty()) add("predict:", "predict", steps.input);
  return rows.empty() ? "" : jobs::table(rows, 2);
}

}  // namespace arbalest::cli
