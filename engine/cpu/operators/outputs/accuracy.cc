#include <cstddef>
#include <span>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/outputs/ranks.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& /*options*/,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.logits.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.labels.shape() == Shape{shape[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);
  ARBALEST_CHECK(!spec.top.empty() && spec.top.size() <= kMaxRankCounts);

  Program forward(engine);
  const Operand logits =
      forward.read_as({Role::kInput, descriptor(spec.logits)}, plain_descriptor(shape, DType::kFloat32));
  forward.add([logits, examples = static_cast<std::size_t>(shape[0]), classes = shape[1], top = spec.top](
                  const TaskContext&, const Addresses& addresses) {
    const std::span labels(static_cast<const std::int32_t*>(addresses[Role::kLabels]), examples);
    count_ranks(logits.at<const float>(addresses), labels, classes, top, static_cast<float*>(addresses[Role::kOutput]));
  });

  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({static_cast<std::int64_t>(spec.top.size())}, DType::kFloat32));
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
}

}  // namespace arbalest::engine::cpu
