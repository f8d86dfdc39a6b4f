// A console whose text can be read.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "report/console_reporter.h"

namespace arbalest::jobs {

// A FILE* whose text can be read.
class Capture {
 public:
  Capture() : file_(open_memstream(&text_, &size_)) {}
  ~Capture() {
    std::fclose(file_);
    std::free(text_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::FILE* file() { return file_; }
  std::string text() {
    std::fflush(file_);
    return {text_, size_};
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* file_;
};

struct Console {
  explicit Console(ConsoleOptions options = {}) : reporter(with_streams(options, *this)) {}
  static ConsoleOptions with_streams(ConsoleOptions options, Console& console) {
    options.results = console.results.file();
    options.messages = console.messages.file();
    return options;
  }

  Capture results;
  Capture messages;
  ConsoleReporter reporter;
};

}  // namespace arbalest::jobs
