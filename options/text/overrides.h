// `--set path=value`: changes to a job from the command line.
//
//   training.batch_size=16            a number, an enum value, true or false
//   name=trial-2                      text; quotes are optional
//   data.digits={}                    a message in the text format; it replaces other alternatives of its oneof
//   model.zoo.mlp={hidden: [64, 32]}
//   optimizer=adamw                   the name of an alternative of the message, alone or with its fields: short for
//   optimizer=sgd{momentum: 0.5}      optimizer={adamw {}} and optimizer={sgd {momentum: 0.5}}
//   learning_rate.schedule=cosine     the same for a oneof of the schema: fields outside the oneof are kept
//   learning_rate.warm_up=default     resets a field that is neither text nor a list, as if the job did not set it
//   model.layers[2].conv.filters=30   an element of a list, counted from 0
//   devices=cpu:0-1                   a list: the first --set replaces the file's, further ones append to it;
//   devices=["cpu:0-1", "cpu:2-3"]    or all at once
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "arbalest/v1/job.pb.h"

namespace arbalest::jobs {

// A setting that cannot be applied.
struct OverrideIssue {
  std::string setting;
  std::string message;
};

class Overrides {
 public:
  // Applies `settings` to `job`, in order. Settings that cannot be applied change nothing.
  Overrides(std::span<const std::string> settings, v1::Job& job);

  const std::vector<OverrideIssue>& issues() const noexcept { return issues_; }

  // The setting that the value at `path` comes from; null if it comes from none.
  const std::string* origin(const std::string& path) const;

  // Whether a setting that could not be applied concerns the field at `path`, the message around it, or a field in it.
  // A mistake there may then be a consequence.
  bool missed(const std::string& path) const;

 private:
  void apply(const std::string& setting, v1::Job& job);

  std::map<std::string, std::string, std::less<>> origins_;  // by path
  std::set<std::string> replaced_lists_;                     // paths of lists that settings have replaced
  std::vector<OverrideIssue> issues_;
};

}  // namespace arbalest::jobs
