// The commands that a user may run after one of `arbalest train`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/reopen/next_steps.h"

namespace arbalest::cli {

// The options of `arbalest train` that its next command needs, too.
struct TrainCommand {
  std::string program;                  // as the user called it
  std::string job;                      // path of the job file
  std::vector<std::string> settings{};  // of --set
  std::vector<std::string> options{};   // others, such as {"--data-root", "data"}
};

// The word as a shell reads it: quoted if it must be.
std::string shell_word(const std::string& word);

// The command with which `command` goes on in `directory`, with more settings.
std::string resume_command(const TrainCommand& command, const std::string& directory,
                           const std::vector<std::string>& settings);

// One line for each command that may follow, with what it does; "" if there is none.
std::string next_commands(const TrainCommand& command, const std::string& directory, const jobs::NextSteps& steps);

}  // namespace arbalest::cli
