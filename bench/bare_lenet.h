// LeNet's forward and backward as bare oneDNN primitives, called one after the other: no engine, loss or update. What
// the engine's overhead is measured against. Single-threaded; oneDNN chooses every layout.
#pragma once

#include <vector>

#include <dnnl.hpp>

namespace arbalest::bench {

class BareLenet {
 public:
  // Primitives keep the OpenMP thread count of the thread that constructs them.
  explicit BareLenet(std::int64_t batch);

  // One mini-batch: forward and backward of all layers.
  void step();

 private:
  using Memory = dnnl::memory;
  using Description = dnnl::memory::desc;

  struct Call {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
  };
  // A tensor and its gradient.
  struct Tensor {
    Memory value;
    Memory gradient;
  };
  Memory allocate(const Description& description);
  Memory as(const Memory& source, const Description& wanted);  // the same or a reordered copy
  void add(const dnnl::primitive& primitive, const std::vector<std::pair<int, Memory>>& arguments);

  void convolution(Tensor& input, Tensor& output, std::int64_t filters, bool first);
  void pooling(Tensor& input, Tensor& output);
  void dense(Tensor& input, Tensor& output, std::int64_t units);
  void relu(Tensor& tensor);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Memory> memories_;             // keeps all alive
  std::vector<Call> calls_;                  // forward, then backward
  std::vector<std::vector<Call>> backward_;  // by layer, while they are added
  std::vector<Call>* target_;                // where add() puts calls
};

}  // namespace arbalest::bench
