// Is oneDNN's direct or its Winograd algorithm faster for the 3 x 3 convolutions of common networks?
// engine/cpu/operators/convolution_kernels.cc chooses by these measurements.
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <dnnl.hpp>

#include "bench/support/harness.h"
#include "engine/cpu/runtime/threads.h"

namespace arbalest::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

struct Images {
  std::int64_t examples, channels, filters, side;
};

const Images kImages[] = {
    {64, 16, 16, 32},  {64, 32, 32, 16},  {64, 64, 64, 8},  // ResNets for CIFAR
    {16, 32, 32, 16},  {16, 64, 64, 8},   {4, 64, 64, 8},   // with smaller mini-batches
    {32, 64, 64, 32},  {32, 64, 128, 16}, {32, 128, 128, 16}, {32, 256, 256, 8}, {32, 512, 512, 4},
    {32, 512, 512, 2},                                                                               // VGG for CIFAR
    {8, 64, 64, 56},   {8, 128, 128, 28}, {8, 256, 256, 14},  {8, 512, 512, 7},  {32, 512, 512, 7},  // ResNet-50
};

// One pass of a convolution with one algorithm, and its buffers.
class Pass {
 public:
  template <typename Primitive, typename Description>
  Pass(const dnnl::engine& engine, const Description& description, Primitive primitive,
       const std::vector<std::pair<int, memory::desc>>& tensors)
      : stream_(engine), primitive_(std::move(primitive)) {
    std::minstd_rand generator(1);
    std::uniform_real_distribution<float> distribution(-0.5F, 0.5F);
    for (const auto& [argument, tensor] : tensors) {
      memory buffer(tensor, engine);
      auto* values = static_cast<float*>(buffer.get_data_handle());
      for (std::size_t i = 0; i < tensor.get_size() / sizeof(float); ++i) values[i] = distribution(generator);
      arguments_.emplace(argument, buffer);
    }
    arguments_.emplace(DNNL_ARG_SCRATCHPAD, memory(description.scratchpad_desc(), engine));
  }
  void run() { primitive_.execute(stream_, arguments_); }

 private:
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

// Returns the forward pass, the gradient of the input and the gradient of the weights.
std::vector<Pass> passes(const dnnl::engine& engine, const Images& of, dnnl::algorithm algorithm) {
  const memory::dims one{1, 1};
  const memory::desc input({of.examples, of.channels, of.side, of.side}, kFloat, Tag::nChw16c);
  const memory::desc output({of.examples, of.filters, of.side, of.side}, kFloat, Tag::nChw16c);
  const memory::desc weights({of.filters, of.channels, 3, 3}, kFloat, Tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, input, weights, output, one, one, one}, attributes, engine);
  const dnnl::convolution_backward_data::primitive_desc of_input({algorithm, input, weights, output, one, one, one},
                                                                 attributes, engine, forward);
  const dnnl::convolution_backward_weights::primitive_desc of_weights(
      {algorithm, input, weights, output, one, one, one}, attributes, engine, forward);
  std::vector<Pass> result;
  result.emplace_back(engine, forward, dnnl::convolution_forward(forward),
                      std::vector<std::pair<int, memory::desc>>{
                          {DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, output}});
  result.emplace_back(
      engine, of_input, dnnl::convolution_backward_data(of_input),
      std::vector<std::pair<int, memory::desc>>{
          {DNNL_ARG_DIFF_DST, output}, {DNNL_ARG_WEIGHTS, of_input.weights_desc()}, {DNNL_ARG_DIFF_SRC, input}});
  result.emplace_back(
      engine, of_weights, dnnl::convolution_backward_weights(of_weights),
      std::vector<std::pair<int, memory::desc>>{
          {DNNL_ARG_SRC, input}, {DNNL_ARG_DIFF_DST, output}, {DNNL_ARG_DIFF_WEIGHTS, of_weights.diff_weights_desc()}});
  return result;
}

nlohmann::ordered_json measure(const Images& of, int turns) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::vector<Pass> direct = passes(engine, of, dnnl::algorithm::convolution_direct);
  std::vector<Pass> winograd = passes(engine, of, dnnl::algorithm::convolution_winograd);
  nlohmann::ordered_json fields{
      {"examples", of.examples}, {"channels", of.channels}, {"filters", of.filters}, {"side", of.side}};
  std::string line;
  const char* const names[] = {"forward", "input_gradient", "weights_gradient"};
  for (std::size_t p = 0; p < direct.size(); ++p) {
    const std::vector<Measurement> results = measure_in_turns(
        {{"direct", [&] { direct[p].run(); }}, {"winograd", [&] { winograd[p].run(); }}}, {.turns = turns});
    const double gain = results[0].seconds / results[1].seconds;
    fields[names[p]] = {{"direct", to_json(results[0])}, {"winograd", to_json(results[1])}, {"gain", gain}};
    line += fmt::format("  {} {:.2f} ({:.3f} ms)", names[p], gain, 1e3 * results[1].seconds);
  }
  fmt::print(stderr, "{:>3} x {:>3} to {:>3} channels, {:>2} x {:>2}: {}\n", of.examples, of.channels, of.filters,
             of.side, of.side, line);
  return fields;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  using namespace arbalest;
  CLI::App app{"The gain of Winograd's algorithm over the direct one, by oneDNN, for 3 x 3 convolutions."};
  int turns = 9;
  int threads = 1;
  app.add_option("--turns", turns, "turns of each")->check(CLI::Range(3, 1000));
  app.add_option("--threads", threads, "threads of each pass")->check(CLI::Range(1, 1024));
  return bench::run_program(app, argc, argv, [&] {
    const engine::cpu::ThreadCountScope scope(threads);
    nlohmann::ordered_json rows;
    for (const bench::Images& of : bench::kImages) rows.push_back(bench::measure(of, turns));
    bench::print_result("winograd", {{"threads", threads}, {"convolutions", rows}});
    return 0;
  });
}
