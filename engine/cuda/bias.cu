#include "engine/cuda/bias.h"

#include <algorithm>

#include "engine/cuda/launch.h"

namespace arbalest::engine::cuda {

namespace {

constexpr int kWidestTile = 32;             // channels that neighboring threads read side by side
constexpr std::int64_t kRowsOfThread = 16;  // about so many additions in a row, before partial sums meet

// How a column sum is cut up: blocks of kThreads threads, each of `tile` channels times kThreads / tile rows. The rows
// are dealt to `slices` blocks a tile.
struct Cut {
  int tile = 1;
  std::int64_t tiles = 1;
  std::int64_t slices = 1;
};

std::int64_t lanes_of(const Cut& cut) { return kThreads / cut.tile; }

Cut cut_for(std::int64_t rows, std::int64_t channels) {
  Cut cut;
  while (cut.tile < kWidestTile && cut.tile < channels) cut.tile *= 2;
  cut.tiles = (channels + cut.tile - 1) / cut.tile;
  const std::int64_t most = std::max<std::int64_t>(kMaxBlocks / cut.tiles, 1);
  cut.slices = std::clamp<std::int64_t>(rows / (lanes_of(cut) * kRowsOfThread), 1, most);
  return cut;
}

__global__ void add_bias_kernel(float* values, const float* bias, std::int64_t elements, std::int64_t channels) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  // One division a thread: the channel moves on by the same distance with each step.
  std::int64_t channel = first % channels;
  const std::int64_t channel_step = step % channels;
  for (std::int64_t i = first; i < elements; i += step) {
    values[i] += bias[channel];
    channel += channel_step;
    if (channel >= channels) channel -= channels;
  }
}

// sums[slice, c] = sum over the slice's rows of values[r, c].
__global__ void sum_slices(const float* values, float* sums, std::int64_t rows, std::int64_t channels, Cut cut) {
  __shared__ float of_thread[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread / cut.tile;
  const int lanes = kThreads / cut.tile;
  const std::int64_t slice = blockIdx.x / cut.tiles;
  const std::int64_t channel = blockIdx.x % cut.tiles * cut.tile + thread % cut.tile;
  float sum = 0.0F;
  if (channel < channels) {
    for (std::int64_t r = slice * lanes + lane; r < rows; r += cut.slices * lanes)
      sum += values[r * channels + channel];
  }
  of_thread[thread] = sum;
  for (int half = lanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) of_thread[thread] += of_thread[thread + half * cut.tile];
  }
  if (lane == 0 && channel < channels) sums[slice * channels + channel] = of_thread[thread];
}

}  // namespace

void add_bias(float* values, const float* bias, std::int64_t rows, std::int64_t channels, cudaStream_t stream) {
  const std::int64_t elements = rows * channels;
  launch(add_bias_kernel, blocks_for(elements), stream, values, bias, elements, channels);
}

void column_sum(const float* values, float* sums, std::int64_t rows, std::int64_t channels, float* partials,
                cudaStream_t stream) {
  const Cut cut = cut_for(rows, channels);
  float* first = cut.slices == 1 ? sums : partials;
  launch(sum_slices, cut.tiles * cut.slices, stream, values, first, rows, channels, cut);
  if (cut.slices == 1) return;
  const Cut whole{cut.tile, cut.tiles, 1};
  launch(sum_slices, whole.tiles, stream, partials, sums, cut.slices, channels, whole);
}

std::size_t column_sum_bytes(std::int64_t rows, std::int64_t channels) {
  const Cut cut = cut_for(rows, channels);
  return cut.slices == 1 ? 0 : static_cast<std::size_t>(cut.slices * channels) * sizeof(float);
}

}  // namespace arbalest::engine::cuda
