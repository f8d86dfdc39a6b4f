// The optimizers of a learner: w <- w + d - c. Here w is the weight, c the correction of model averaging
// (engine/passes/weight_update.h), and d is given below. g is the gradient of one element (scaled by clipping). gamma
// is the learning rate and lambda the weight decay, each with its range's multiplier.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace arbalest::engine {

// Stochastic gradient descent. With g' = g + lambda w and momentum m (Polyak 1964):
//   v <- m v - gamma g'     d = v
// and with Nesterov's momentum (Sutskever et al., ICML 2013, in the form of torch.optim.SGD)
//   v <- m v - gamma g'     d = m v - gamma g'
// The learning rate is part of v, as in Caffe. torch.optim.SGD multiplies v by it instead, which differs while the
// learning rate changes.
struct Sgd {
  float momentum = 0.0F;  // in [0, 1); 0: v is not kept
  bool nesterov = false;
  float weight_decay = 0.0F;
};

// Tieleman and Hinton 2012, in the form of torch.optim.RMSprop (not centered). With g' = g + lambda w and smoothing r:
//   q <- r q + (1 - r) g'^2     b <- m b + g' / (sqrt(q) + epsilon)     d = -gamma b
struct RmsProp {
  float smoothing = 0.99F;  // in [0, 1)
  float momentum = 0.0F;    // in [0, 1); 0: b is not kept
  float epsilon = 1e-8F;    // above 0
  float weight_decay = 0.0F;
};

// Duchi, Hazan and Singer, "Adaptive subgradient methods" (JMLR 2011), in the form of torch.optim.Adagrad. With g' = g
// + lambda w:
//   q <- q + g'^2     d = -gamma g' / (sqrt(q) + epsilon)
struct Adagrad {
  float epsilon = 1e-10F;  // above 0
  float weight_decay = 0.0F;
};

// Loshchilov and Hutter, "Decoupled weight decay regularization" (ICLR 2019), in the form of torch.optim.AdamW:
//   p <- beta1 p + (1 - beta1) g     q <- beta2 q + (1 - beta2) g^2
//   d = -gamma (lambda w + p / (1 - beta1^t) / (sqrt(q / (1 - beta2^t)) + epsilon))
// where t counts the learner's steps since p and q were zero, including this one.
struct AdamW {
  float beta1 = 0.9F;     // in [0, 1)
  float beta2 = 0.999F;   // in [0, 1)
  float epsilon = 1e-8F;  // above 0
  float weight_decay = 0.01F;
};

using UpdateRule = std::variant<Sgd, RmsProp, AdamW, Adagrad>;

inline constexpr std::size_t kMaxStateSlots = 2;

// Names of the vectors that the rule keeps in addition to the weights, such as "momentum"; at most kMaxStateSlots. They
// start at 0.
std::span<const std::string_view> state_slots(const UpdateRule& rule);

// m of Sgd and RmsProp; 0 for Adagrad, which has none, and for AdamW, whose moments are means.
float momentum_of(const UpdateRule& rule);
float weight_decay_of(const UpdateRule& rule);

// AdamW's bias corrections of p and sqrt(q) in step number t, from 1: 1 / (1 - beta1^t) and 1 / sqrt(1 - beta2^t). 1
// for other rules.
std::array<float, 2> moment_corrections(const UpdateRule& rule, std::uint64_t step);

}  // namespace arbalest::engine
