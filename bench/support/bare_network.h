// A network's forward and backward pass as a sequence of bare oneDNN primitives, without engine, loss or update. It is
// the reference for the engine's overhead. It is single-threaded, and oneDNN chooses every layout.
#pragma once

#include <vector>

#include <dnnl.hpp>

namespace arbalest::bench {

class BareNetwork {
 public:
  // Primitives keep the OpenMP thread count of the thread that creates them. Images are 28 x 28 here, and 32 x 32 x 3
  // for resnet_cifar.
  static BareNetwork lenet(std::int64_t batch);
  // He et al. (2015), section 4.2: convolutions and batch norms, each with its ReLU. oneDNN has no primitive that adds
  // a shortcut in the same pass, so neither shortcuts nor their gradients are added. This is less work than in the
  // model.
  static BareNetwork resnet_cifar(int depth, std::int64_t batch);

  // Runs one mini-batch: forward and backward of all layers.
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
  Memory allocate_workspace(const Description& description);
  void begin_backward();                                       // for the layer whose forward pass was added
  Memory as(const Memory& source, const Description& wanted);  // `source` or a reordered copy
  void add(const dnnl::primitive& primitive, const std::vector<std::pair<int, Memory>>& arguments);

  struct Kernel {
    std::int64_t size;
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    bool bias = true;
  };

  BareNetwork() = default;
  Tensor image(const Memory::dims& dims);
  // Appends the backward calls, which add() has collected by layer, to the forward calls.
  void finish();

  void convolution(Tensor& input, Tensor& output, std::int64_t filters, const Kernel& kernel, bool first = false);
  void batch_norm_relu(Tensor& input, Tensor& output);
  void pooling(Tensor& input, Tensor& output, dnnl::algorithm algorithm, std::int64_t size);
  void dense(Tensor& input, Tensor& output, std::int64_t units);
  void relu(Tensor& tensor);

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Memory> memories_;             // owns all memory
  std::vector<Call> calls_;                  // forward, then backward
  std::vector<std::vector<Call>> backward_;  // by layer, until finish() appends them
  bool in_backward_ = false;                 // whether add() adds to backward_
};

}  // namespace arbalest::bench
