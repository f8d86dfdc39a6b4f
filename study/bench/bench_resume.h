// Resumes a bench that ended before all of its runs had.
#pragma once

#include <filesystem>

#include "study/bench/bench.h"

namespace arbalest::jobs {

// The file that a bench locks in its directory.
inline constexpr const char* kBenchLock = ".lock";

// Whether the directory holds a bench to resume; false if it is empty or missing. Throws kUsage if it holds anything
// else.
bool holds_bench(const std::filesystem::path& directory);

// Keeps other benches out of a directory while this object lives, and while a run that its process has started is
// alive: such a run may still be saving after the bench has been killed.
class BenchLock {
 public:
  // Throws kUsage if another bench uses the directory or no file can be locked there, kOutOfMemory if the disk is full.
  explicit BenchLock(const std::filesystem::path& directory);
  ~BenchLock();
  BenchLock(const BenchLock&) = delete;
  BenchLock& operator=(const BenchLock&) = delete;

 private:
  int file_ = -1;
};

// Restores the bench from bench.json in the context's directory; measured runs are read from their directories. The
// remains of all other runs are removed, because those run again. Throws kUsage if the directory holds no bench, or one
// with another plan, and kData if bench.json is damaged; nothing is removed then.
BenchResult resume_bench(const BenchPlan& plan, const BenchContext& context);

}  // namespace arbalest::jobs
