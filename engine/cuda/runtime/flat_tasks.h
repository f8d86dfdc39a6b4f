// The CUDA implementations of FlatTask (engine/stream.h), one per task. They are defined in cuda/passes and
// cuda/operators/gather_examples.cu. Formulas of single elements come from engine/elementwise, as on the CPU.
#pragma once

#include "engine/cuda/runtime/stream.h"
#include "engine/ops/gather_examples.h"
#include "engine/passes/averaging.h"
#include "engine/passes/gradient_clip.h"
#include "engine/passes/moving_average.h"
#include "engine/passes/round_weights.h"
#include "engine/passes/tensor_sum.h"
#include "engine/passes/vector_hash.h"
#include "engine/passes/vector_variance.h"
#include "engine/passes/weight_update.h"

namespace arbalest::engine::cuda {

// Each function enqueues kernels on context.stream and allocates no memory. Floating-point sums use a fixed order, so a
// repeated run gives the same bits.
void run_flat(const WeightUpdate& task, const StreamContext& context);
void run_flat(const GradientClip& task, const StreamContext& context);
void run_flat(const ReplicaDifference& task, const StreamContext& context);
void run_flat(const CentralUpdate& task, const StreamContext& context);
void run_flat(const LocalAveraging& task, const StreamContext& context);
void run_flat(const VectorMean& task, const StreamContext& context);
void run_flat(const VectorVariance& task, const StreamContext& context);
void run_flat(const MovingAverage& task, const StreamContext& context);
void run_flat(const GatherExamples& task, const StreamContext& context);
void run_flat(const RoundWeights& task, const StreamContext& context);
void run_flat(const TensorSum& task, const StreamContext& context);
void run_flat(const VectorHash& task, const StreamContext& context);

}  // namespace arbalest::engine::cuda
