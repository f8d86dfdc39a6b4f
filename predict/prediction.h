// The answer of a model about one example.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace arbalest::jobs {

struct Prediction {
  struct Choice {
    std::int64_t output = 0;  // number of the class
    float probability = 0.0F;

    bool operator==(const Choice&) const = default;
  };

  std::vector<Choice> top;     // descending; of equal probabilities the lower number comes first
  std::optional<float> score;  // of models that predict a number, instead of `top`
  std::string error;           // why there is neither; "" if there is
};

// The `top` most probable classes by the softmax of the logits; all if there are fewer. An error if a logit is not
// finite.
Prediction classify(std::span<const float> logits, int top);
// The prediction of a model that has one output, a number.
Prediction score(float output);

}  // namespace arbalest::jobs
