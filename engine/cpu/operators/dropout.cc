#include "engine/elementwise/dropout.h"

#include <cstring>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// Number of elements whose random words are computed at once, so that the compiler can use vectors.
constexpr std::int64_t kBlock = 256;

// Masks elements [begin, end), begin a multiple of four; target may be source.
template <typename T>
void mask_range(const T* source, T* target, std::int64_t begin, std::int64_t end,
                elementwise::DropoutMask mask) {  // by value: no store can change it
  for (std::int64_t block = begin; block < end; block += kBlock) {
    std::uint32_t words[kBlock];
    const auto first_quad = static_cast<std::uint32_t>(block / 4);
#pragma omp simd
    for (std::uint32_t quad = 0; quad < kBlock / 4; ++quad) {
      const elementwise::PhiloxCounter random = elementwise::dropout_words(mask, first_quad + quad);
      words[4 * quad] = random.words[0];
      words[4 * quad + 1] = random.words[1];
      words[4 * quad + 2] = random.words[2];
      words[4 * quad + 3] = random.words[3];
    }
    const std::int64_t count = std::min(kBlock, end - block);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = elementwise::load(source[block + i]);
      elementwise::store(elementwise::dropout(value, words[i], mask), target[block + i]);
    }
  }
}

// Masks rows [begin, end) of a block of columns, by the numbers that its elements have in the whole tensors. Target may
// be source.
template <typename T>
void mask_block(const T* source, T* target, const Shape& shape, std::int64_t begin, std::int64_t end,
                const ColumnBlock& block, const elementwise::DropoutMask& own) {
  const std::int64_t width = shape[1];
  const std::int64_t examples = shape[0] / block.ranks;
  for (std::int64_t row = begin; row < end; ++row) {
    elementwise::DropoutMask mask = own;
    mask.task = own.task - static_cast<std::uint64_t>(block.rank) + static_cast<std::uint64_t>(row / examples);
    const std::int64_t first = (row % examples * block.ranks + block.rank) * width;
    elementwise::PhiloxCounter random{};
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t element = first + i;
      if (i == 0 || element % 4 == 0)
        random = elementwise::dropout_words(mask, static_cast<std::uint32_t>(element / 4));
      const float value = elementwise::load(source[row * width + i]);
      elementwise::store(elementwise::dropout(value, random.words[element % 4], mask), target[row * width + i]);
    }
  }
}

// target = source under the mask of the running step. Elements are numbered in canonical order, so other layouts are
// copied to that order.
Program make_masking(const dnnl::engine& engine, const DropoutSpec& spec, Role from, Role to) {
  Program program(engine);
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const dnnl::memory::desc plain = plain_descriptor(spec.input.shape(), spec.input.dtype());
  const Operand target{to, tensor};
  const Operand source = program.read_as({from, tensor}, plain);
  const Operand masked = source.role == Role::kScratch ? source : target;
  const std::int64_t elements = spec.input.shape().elements();
  const Shape shape = spec.input.shape();
  const std::optional<ColumnBlock> block = spec.block;
  const elementwise::DropoutConstants constants = elementwise::dropout_constants(spec.layer, spec.ratio);
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* step = static_cast<const StepParameters*>(addresses[Role::kStep]);
      const elementwise::DropoutMask mask{step->seed, step->task, constants};
      const auto* read = source.at<const T>(addresses);
      auto* written = masked.at<T>(addresses);
      if (block) {
        for_each_part(context.threads, context.threads, [&](std::int64_t part) {
          const std::int64_t rows = shape[0];
          mask_block(read, written, shape, rows * part / context.threads, rows * (part + 1) / context.threads, *block,
                     mask);
        });
        return;
      }
      for_ranges(context.threads, elements,
                 [&](std::int64_t begin, std::int64_t end) { mask_range(read, written, begin, end, mask); });
    });
  });
  program.deliver(masked, target);
  return program;
}

Program make_copy(const dnnl::engine& engine, std::size_t bytes) {
  Program program(engine);
  program.add([bytes](const TaskContext&, const Addresses& addresses) {
    void* output = addresses[Role::kOutput];
    if (output != addresses[Role::kInput]) std::memcpy(output, addresses[Role::kInput], bytes);
  });
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const DropoutSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  ARBALEST_CHECK(spec.ratio >= 0.0F && spec.ratio < 1.0F);
  ARBALEST_CHECK(spec.input.shape().elements() <= elementwise::kMaxDropoutElements);
  ARBALEST_CHECK(!spec.block || spec.input.shape().rank() == 2);
  OperatorTraits traits;
  traits.output = spec.input;
  traits.in_place_forward = true;
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<ProgramOperator>(std::move(traits), make_copy(engine, spec.input.bytes()), std::nullopt);
  }
  traits.in_place_backward = true;
  Program backward(engine);
  if (options.input_gradient) backward = make_masking(engine, spec, Role::kOutputGradient, Role::kInputGradient);
  return std::make_unique<ProgramOperator>(std::move(traits), make_masking(engine, spec, Role::kInput, Role::kOutput),
                                           std::move(backward));
}

}  // namespace arbalest::engine::cpu
