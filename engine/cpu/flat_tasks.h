// Runs the tasks that need no preparation, on the calling thread's cores (elementwise bodies: engine/elementwise).
#pragma once

#include "engine/cpu/task.h"
#include "engine/ops/averaging.h"
#include "engine/ops/gather_examples.h"
#include "engine/ops/gradient_clip.h"
#include "engine/ops/moving_average.h"
#include "engine/ops/round_weights.h"
#include "engine/ops/tensor_sum.h"
#include "engine/ops/vector_spread.h"
#include "engine/ops/weight_update.h"

namespace arbalest::engine::cpu {

void run_flat(const WeightUpdate& task, const TaskContext& context);
void run_flat(const GradientClip& task, const TaskContext& context);
void run_flat(const ReplicaDifference& task, const TaskContext& context);
void run_flat(const CentralUpdate& task, const TaskContext& context);
void run_flat(const LocalAveraging& task, const TaskContext& context);
void run_flat(const VectorMean& task, const TaskContext& context);
void run_flat(const VectorSpread& task, const TaskContext& context);
void run_flat(const MovingAverage& task, const TaskContext& context);
void run_flat(const GatherExamples& task, const TaskContext& context);
void run_flat(const RoundWeights& task, const TaskContext& context);
void run_flat(const TensorSum& task, const TaskContext& context);

}  // namespace arbalest::engine::cpu
