// Work of streams: the object that a call enqueues, and one execution of it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

// One execution of work. It runs in steps, and other streams may run between the steps.
class Execution {
 public:
  virtual ~Execution() = default;
  virtual bool can_step() const { return true; }
  virtual bool step() = 0;  // true: done
  // Whether it may become able to step by what another host thread or another process does.
  virtual bool waits_for_others() const { return false; }
};

// Work that a call enqueues. A graph keeps its works and executes them many times.
struct Work {
  std::string name;               // the call's, with the algorithm of a convolution: "cudnnConvolutionForward 6"
  std::vector<const void*> uses;  // memory that it may read or write
  std::function<std::unique_ptr<Execution>(CUstream_st&)> start;
  std::shared_ptr<const std::vector<struct Node>> nodes = nullptr;  // of a graph's launch
};

// A point of a stream. It has been passed when `number` executions of the stream have ended.
struct Position {
  CUstream_st* stream = nullptr;
  std::uint64_t number = 0;
};

struct Node {
  std::shared_ptr<const Work> work;
  std::vector<std::size_t> after;  // indices of earlier nodes
};

// Makes work of a single step.
std::shared_ptr<const Work> make_work(std::string name, std::vector<const void*> uses, std::function<void()> run);
// Makes work that ends when `position` has been passed.
std::shared_ptr<const Work> make_wait(Position position);
// Makes work that runs the nodes in a random order that their edges allow.
std::shared_ptr<const Work> make_graph_run(std::shared_ptr<const std::vector<Node>> nodes);

}  // namespace arbalest::tests::cuda_stand_in
