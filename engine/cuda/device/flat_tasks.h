// The tasks that need no preparation as kernels (elementwise bodies: engine/elementwise, so their bits are the CPU's).
#pragma once

#include "engine/cuda/device/stream.h"
#include "engine/ops/gather_examples.h"
#include "engine/passes/averaging.h"
#include "engine/passes/gradient_clip.h"
#include "engine/passes/moving_average.h"
#include "engine/passes/round_weights.h"
#include "engine/passes/tensor_sum.h"
#include "engine/passes/vector_spread.h"
#include "engine/passes/weight_update.h"

namespace arbalest::engine::cuda {

// Each enqueues its kernels on context.stream and allocates nothing. Additions are in one order, so results repeat.
void run_flat(const WeightUpdate& task, const StreamContext& context);
void run_flat(const GradientClip& task, const StreamContext& context);
void run_flat(const ReplicaDifference& task, const StreamContext& context);
void run_flat(const CentralUpdate& task, const StreamContext& context);
void run_flat(const LocalAveraging& task, const StreamContext& context);
void run_flat(const VectorMean& task, const StreamContext& context);
void run_flat(const VectorSpread& task, const StreamContext& context);
void run_flat(const MovingAverage& task, const StreamContext& context);
void run_flat(const GatherExamples& task, const StreamContext& context);
void run_flat(const RoundWeights& task, const StreamContext& context);
void run_flat(const TensorSum& task, const StreamContext& context);

}  // namespace arbalest::engine::cuda
