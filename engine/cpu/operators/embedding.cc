#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/rows.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// The looked-up ids of the mini-batch.
struct Ids {
  std::int64_t examples;
  std::int64_t columns;
  std::int64_t column;

  std::int32_t at(const std::int32_t* ids, std::int64_t n) const { return ids[n * columns + column]; }
};

struct Table {
  std::int64_t rows;
  std::int64_t width;
};

void check(const Ids& of, const Table& table, const std::int32_t* ids) {
  for (std::int64_t n = 0; n < of.examples; ++n) {
    const std::int32_t id = of.at(ids, n);
    if (id >= 0 && id < table.rows) continue;
    fail(ErrorKind::kData, "id {} of example {} in the mini-batch is not below the number of rows, {}", id, n,
         table.rows);
  }
}

Program make_forward(const dnnl::engine& engine, const Ids& of, const Table& table) {
  Program program(engine);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* ids = static_cast<const std::int32_t*>(addresses[Role::kInput]);
    const auto* weights = static_cast<const float*>(addresses[Role::kWeights]);
    auto* output = static_cast<float*>(addresses[Role::kOutput]);
    check(of, table, ids);
    for_each_part(threads_for_rows(context.threads, of.examples, table.width), of.examples, [&](std::int64_t n) {
      std::copy_n(weights + of.at(ids, n) * table.width, table.width, output + n * table.width);
    });
  });
  return program;
}

// Each thread owns a range of the table's rows: it zeroes them and adds their contributions in the order of the
// mini-batch, so that the sums are the same on any number of threads.
Program make_backward(const dnnl::engine& engine, const Ids& of, const Table& table) {
  Program program(engine);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* ids = static_cast<const std::int32_t*>(addresses[Role::kInput]);
    const auto* arriving = static_cast<const float*>(addresses[Role::kOutputGradient]);
    auto* gradient = static_cast<float*>(addresses[Role::kWeightsGradient]);
    const int threads = threads_for_rows(context.threads, of.examples + table.rows, table.width);
    for_ranges(threads, table.rows, [&](std::int64_t begin, std::int64_t end) {
      std::fill(gradient + begin * table.width, gradient + end * table.width, 0.0F);
      for (std::int64_t n = 0; n < of.examples; ++n) {
        const std::int32_t id = of.at(ids, n);
        if (id < begin || id >= end) continue;
        float* row = gradient + id * table.width;
        const float* add = arriving + n * table.width;
        for (std::int64_t c = 0; c < table.width; ++c) row[c] += add[c];
      }
    });
  });
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const EmbeddingSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.ids.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.ids.dtype() == DType::kInt32 && spec.column < shape[1]);
  const Ids ids{shape[0], shape[1], spec.column};
  const Table table{spec.rows, spec.width};
  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({ids.examples, table.width}, DType::kFloat32));
  traits.parameters = {make_layout(plain_descriptor({table.rows, table.width}, DType::kFloat32))};
  traits.backward_reads_inputs = true;
  std::optional<Program> backward;
  if (options.mode == OperatorMode::kTraining) backward = make_backward(engine, ids, table);
  return std::make_unique<ProgramOperator>(std::move(traits), make_forward(engine, ids, table), std::move(backward));
}

}  // namespace arbalest::engine::cpu
