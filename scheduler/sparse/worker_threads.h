// Threads of a phase of a sparse model's training.
#pragma once

#include <functional>
#include <vector>

namespace arbalest::scheduler {

// Calls work(i) for every worker i on a thread of its own, pinned to cores[i] unless that is empty, and waits for all.
// If one throws or cannot be started, `cancel` is called once, so that the others do not wait for it, and the first
// error is thrown at the end. A thread that cannot be started is an error of kind kOutOfMemory.
void run_workers(const std::vector<std::vector<int>>& cores, const std::function<void(int)>& work,
                 const std::function<void()>& cancel);

}  // namespace arbalest::scheduler
