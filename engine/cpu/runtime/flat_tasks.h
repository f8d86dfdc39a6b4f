// Runs the tasks that need no preparation, on the calling thread's cores (elementwise bodies: engine/elementwise).
#pragma once

#include "engine/cpu/runtime/task.h"
#include "engine/ops/gather_examples.h"
#include "engine/passes/averaging.h"
#include "engine/passes/gradient_clip.h"
#include "engine/passes/moving_average.h"
#include "engine/passes/round_weights.h"
#include "engine/passes/tensor_sum.h"
#include "engine/passes/vector_hash.h"
#include "engine/passes/vector_variance.h"
#include "engine/passes/weight_update.h"

namespace arbalest::engine::cpu {

void run_flat(const WeightUpdate& task, const TaskContext& context);
void run_flat(const GradientClip& task, const TaskContext& context);
void run_flat(const ReplicaDifference& task, const TaskContext& context);
void run_flat(const CentralUpdate& task, const TaskContext& context);
void run_flat(const LocalAveraging& task, const TaskContext& context);
void run_flat(const VectorMean& task, const TaskContext& context);
void run_flat(const VectorVariance& task, const TaskContext& context);
void run_flat(const MovingAverage& task, const TaskContext& context);
void run_flat(const GatherExamples& task, const TaskContext& context);
void run_flat(const RoundWeights& task, const TaskContext& context);
void run_flat(const TensorSum& task, const TaskContext& context);
void run_flat(const VectorHash& task, const TaskContext& context);

}  // namespace arbalest::engine::cpu
