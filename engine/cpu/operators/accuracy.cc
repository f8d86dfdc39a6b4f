#include <array>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/elementwise/rank.h"

namespace arbalest::engine::cpu {

namespace {

// Number of logits larger than the label's; -1 if the label's logit is NaN, or the label is no class.
std::int64_t rank_of(const float* logits, std::int64_t classes, std::int32_t label) {
  if (label < 0 || label >= classes || logits[label] != logits[label]) return -1;
  std::int64_t rank = 0;
  for (std::int64_t c = 0; c < classes; ++c) {
    rank += elementwise::ranks_before(logits[c], c, logits[label], label) ? 1 : 0;
  }
  return rank;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& /*options*/,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.logits.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.labels.shape() == Shape{shape[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);
  ARBALEST_CHECK(!spec.top.empty() && spec.top.size() <= kMaxRankCounts);

  Program forward(engine);
  const Operand logits =
      forward.read_as({Role::kInput, descriptor(spec.logits)}, plain_descriptor(shape, DType::kFloat32));
  forward.add([logits, examples = shape[0], classes = shape[1], top = spec.top](const TaskContext&,
                                                                                const Addresses& addresses) {
    const auto* rows = logits.at<const float>(addresses);
    const auto* labels = static_cast<const std::int32_t*>(addresses[Role::kLabels]);
    std::array<std::int64_t, kMaxRankCounts> counts{};
    for (std::int64_t n = 0; n < examples; ++n) {
      const std::int64_t rank = rank_of(rows + n * classes, classes, labels[n]);
      if (rank < 0) continue;
      for (std::size_t k = 0; k < top.size(); ++k) counts[k] += rank < top[k] ? 1 : 0;
    }
    auto* result = static_cast<float*>(addresses[Role::kOutput]);
    for (std::size_t k = 0; k < top.size(); ++k) result[k] = static_cast<float>(counts[k]);
  });

  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({static_cast<std::int64_t>(spec.top.size())}, DType::kFloat32));
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
}

}  // namespace arbalest::engine::cpu
