// `--set path=value`: changes to a job from the command line.
//
//   training.batch_size=16            a number, a word of an enum, true or false
//   name=trial-2                      text; quotes are optional
//   data.digits={}                    a message, in the text format; of alternatives it takes the place of the others
//   model.zoo.mlp={hidden: [64, 32]}
//   optimizer=adamw                   the name of an alternative of the message, alone or with its fields: the same as
//   optimizer=sgd{momentum: 0.5}      optimizer={adamw {}} and optimizer={sgd {momentum: 0.5}}
//   learning_rate.schedule=cosine     the same for a oneof of the schema: the fields beside its alternatives stay
//   learning_rate.warm_up=default     a field that is not text and no list, as if the job did not have it
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
  // Applies `settings` to `job`, in order; those that cannot be applied change nothing.
  Overrides(std::span<const std::string> settings, v1::Job& job);

  const std::vector<OverrideIssue>& issues() const noexcept { return issues_; }

  // The setting that the value at `path` comes from, or null if it is not from one.
  const std::string* origin(const std::string& path) const;

  // Whether a setting that cannot be applied was meant for the field at `path`, for the message around it, or for a
  // field of it: what is wrong there may follow from that.
  bool missed(const std::string& path) const;

 private:
  void apply(const std::string& setting, v1::Job& job);

  std::map<std::string, std::string, std::less<>> origins_;  // by path
  std::set<std::string> replaced_lists_;                     // paths of lists that are no longer the file's
  std::vector<OverrideIssue> issues_;
};

}  // namespace arbalest::jobs
