// Numbers of learners, by device, for which there was no memory.
#pragma once

#include <vector>

namespace arbalest::jobs {

class LostCounts {
 public:
  // `to` did not fit while `from` trained. Where that was to grow, nothing that is as large on every device does; fewer
  // learners are lost by themselves, as both were needed for a while.
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
