// A unit of work on a CPU stream: run once, or kept in a TaskGraph and run repeatedly.
#pragma once

#include <memory>
#include <utility>

namespace arbalest::engine::cpu {

// The resources that a stream gives to a task.
struct TaskContext {
  int threads = 1;  // the stream's share of cores: limit for parallel loops
};

class Task {
 public:
  virtual ~Task() = default;
  virtual void run(const TaskContext& context) = 0;
  // Called instead of run on a stream that has failed: it must notify the streams that wait for this task.
  virtual void abandon() noexcept {}
};

template <typename Function>
std::unique_ptr<Task> make_task(Function function) {
  class FunctionTask final : public Task {
   public:
    explicit FunctionTask(Function function) : function_(std::move(function)) {}
    void run(const TaskContext& context) override { function_(context); }

   private:
    Function function_;
  };
  return std::make_unique<FunctionTask>(std::move(function));
}

}  // namespace arbalest::engine::cpu
