// Numbers of learners, by device, for which there was no memory.
#pragma once

#include <vector>

namespace arbalest::jobs {

class FailedCounts {
 public:
  // Records that `to` did not fit while `from` trained. If that was to grow, every count at least as large on every
  // device is lost, too. A count with fewer learners is lost alone: it failed because both counts needed memory at
  // once.
  void add(const std::vector<int>& from, const std::vector<int>& to);
  bool contain(const std::vector<int>& counts) const;

 private:
  struct Lost {
    std::vector<int> counts;
    bool grew = false;
  };
  std::vector<Lost> lost_;
};

}  // namespace arbalest::jobs
