// The event files of a run: DIRECTORY/tensorboard with the job, and its folders train, test and validation with
// scalars.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "report/tensorboard/curve.h"

namespace arbalest::jobs {

class EventFile;
class RunEvents;

// The files are made of the lines of metrics.jsonl. So they need no state of their own in a checkpoint: a resumed run
// makes them anew from the log that it goes on with. If one is deleted while the run trains, all are made anew, too.
class TensorBoardLog {
 public:
  explicit TensorBoardLog(std::filesystem::path run_directory);
  ~TensorBoardLog();

  // Makes the files anew from the lines of metrics.jsonl. Throws as fail_write does; nothing is whole then.
  void begin(const std::string& job_text);
  // Adds a line that metrics.jsonl has got. If files are not whole, makes them anew. Throws as begin() does.
  void add(const std::string& event, const nlohmann::ordered_json& row);
  // Notes that metrics.jsonl lacks a line, so the files lack it, too.
  void skip() noexcept { is_whole_ = false; }
  // Whether the files hold all lines.
  bool is_whole() const noexcept { return is_whole_; }

 private:
  bool is_in_place() const;
  void rebuild();
  void write(const std::string& event, const nlohmann::ordered_json& row);

  std::filesystem::path run_directory_;
  std::string job_text_;
  std::unique_ptr<RunEvents> events_;
  std::map<Curve, std::unique_ptr<EventFile>> files_;  // made with their first event
  bool is_whole_ = false;                              // before begin() there are none
};

}  // namespace arbalest::jobs
