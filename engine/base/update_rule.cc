#include "engine/base/update_rule.h"

#include <cmath>

namespace arbalest::engine {

namespace {

constexpr std::string_view kMomentum[] = {"momentum"};
constexpr std::string_view kSquares[] = {"square_average", "momentum"};
constexpr std::string_view kSquareSum[] = {"square_sum"};
constexpr std::string_view kMoments[] = {"first_moment", "second_moment"};

}  // namespace

std::span<const std::string_view> state_slots(const UpdateRule& rule) {
  const std::size_t kept = momentum_of(rule) == 0.0F ? 0 : 1;
  if (std::holds_alternative<Sgd>(rule)) return std::span(kMomentum).first(kept);
  if (std::holds_alternative<RmsProp>(rule)) return std::span(kSquares).first(1 + kept);
  if (std::holds_alternative<Adagrad>(rule)) return kSquareSum;
  return kMoments;
}

float momentum_of(const UpdateRule& rule) {
  if (const auto* sgd = std::get_if<Sgd>(&rule)) return sgd->momentum;
  if (const auto* rms_prop = std::get_if<RmsProp>(&rule)) return rms_prop->momentum;
  return 0.0F;
}

float weight_decay_of(const UpdateRule& rule) {
  return std::visit([](const auto& kind) { return kind.weight_decay; }, rule);
}

std::array<float, 2> moment_corrections(const UpdateRule& rule, std::uint64_t step) {
  const auto* adam_w = std::get_if<AdamW>(&rule);
  if (adam_w == nullptr) return {1.0F, 1.0F};
  const auto left = [&](float beta) { return 1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)); };
  return {static_cast<float>(1.0 / left(adam_w->beta1)), static_cast<float>(1.0 / std::sqrt(left(adam_w->beta2)))};
}

}  // namespace arbalest::engine
