// A run that is trained once for all tests of a program, for commands on its model.
#pragma once

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cli/small_run.h"
#include "tests/support/image_writer.h"

namespace arbalest::tests {

// A run of a linear model on digits in "run", three images, and one that is broken.
class Trained {
 public:
  Trained() {
    const Completed result = program_.run(kSmall);
    if (result.exit_code != 0) throw std::runtime_error(result.err);
    std::filesystem::create_directories(program_ / "images/more");
    write_text(program_ / "images/a.png", png(gradient(28, 28, 1)));
    write_text(program_ / "images/b.jpg", jpeg(gradient(40, 60, 3, 7)));
    write_text(program_ / "images/more/c.PNG", png(gradient(28, 28, 1, 11)));
    write_text(program_ / "broken.png", png(gradient(28, 28, 1)).substr(0, 60));
  }

  const Program& program() const { return program_; }
  std::filesystem::path operator/(const std::string& name) const { return program_ / name; }

  Completed predict(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"predict", "run"});
    return program_.run(arguments);
  }
  // Runs a script of the shell, in which $predict stands for the program and its command.
  Completed shell(const std::string& script) const {
    const std::string predict = std::string("predict='") + ARBALEST_PROGRAM + " predict run'\n";
    return Subprocess({"/bin/sh", "-c", predict + script}, program_.environment(), program_.directory()).wait();
  }

 private:
  Program program_;
};

inline const Trained& trained() {
  static const Trained run;  // training it once suffices, because no test changes it
  return run;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace arbalest::tests
