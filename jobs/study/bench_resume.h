// Going on with a bench that has ended before all of its runs had.
#pragma once

#include <filesystem>

#include "jobs/study/bench.h"

namespace arbalest::jobs {

// The file that a bench locks in its directory.
inline constexpr const char* kBenchLock = ".lock";

// Whether there is a bench in the directory to go on with; false if nothing is there. Throws kUsage if something else
// is.
bool holds_bench(const std::filesystem::path& directory);

// Keeps other benches out of a directory for as long as it lives, and for as long as a run that its process has begun
// does: such a run may still be saving when the bench has been killed.
class BenchLock {
 public:
  // Throws kUsage if another bench has the directory or no file can be locked there, kOutOfMemory if the disk is full.
  explicit BenchLock(const std::filesystem::path& directory);
  ~BenchLock();
  BenchLock(const BenchLock&) = delete;
  BenchLock& operator=(const BenchLock&) = delete;

 private:
  int file_ = -1;
};

// The bench that bench.json in the context's directory tells of, its measured runs as their directories have them. What
// the other runs have left is removed, since they run again. Throws kUsage if the directory holds no bench, or one of
// another plan than this, and kData if bench.json is damaged; nothing is removed then.
BenchResult resume_bench(const BenchPlan& plan, const BenchContext& context);

}  // namespace arbalest::jobs
