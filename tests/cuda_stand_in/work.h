// Work of streams: what a call enqueues, and one execution of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// One execution. It runs in steps, between which other streams may run.
class Execution {
 public:
  virtual ~Execution() = default;
  virtual bool can_step() const { return true; }
  virtual bool step() = 0;  // true: done
};

// What a call enqueues; a graph keeps it and executes it many times.
struct Work {
  std::string name;               // of the call
  std::vector<const void*> uses;  // what it may read or write
  std::function<std::unique_ptr<Execution>(CUstream_st&)> start;
};

// A point of a stream: passed when so many of its executions have ended.
struct Position {
  CUstream_st* stream = nullptr;
  std::uint64_t number = 0;
};

struct Node {
  std::shared_ptr<const Work> work;
  std::vector<std::size_t> after;  // indices of earlier nodes
};

// A piece of work of one step.
std::shared_ptr<const Work> make_work(std::string name, std::vector<const void*> uses, std::function<void()> run);
// Ends when `position` has been passed.
std::shared_ptr<const Work> make_wait(Position position);
// The nodes in any order that their edges allow.
std::shared_ptr<const Work> make_graph_run(std::shared_ptr<const std::vector<Node>> nodes);

}  // namespace arbalest::tests::cuda_stand_in
