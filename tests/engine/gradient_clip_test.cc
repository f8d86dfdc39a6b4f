#include "engine/passes/gradient_clip.h"

#include <cmath>
#include <limits>

#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"
#include "tests/support/reference_update.h"

namespace arbalest::tests {
namespace {

float clip_scale(const Floats& gradient, float max_norm, int threads = 1) {
  const auto device = open_test_device();
  const engine::Buffer gradient_there = upload(*device, gradient);
  const engine::Buffer scale_there = upload(*device, std::vector{-1.0F});
  const auto stream = device->create_stream({"test", threads});
  stream->enqueue(engine::GradientClip{.gradient = gradient_there.as<float>(),
                                       .elements = static_cast<std::int64_t>(gradient.size()),
                                       .max_norm = max_norm,
                                       .scale = scale_there.as<float>()},
                  "gradient norm");
  stream->record().synchronize();
  return download<float>(*device, scale_there.data(), 1)[0];
}

TEST_CASE("a gradient is scaled down to the maximum norm, and never up") {
  for (const std::int64_t elements : {1, 7, 512, 1003, 300001}) {
    const Values values = random_values(elements, 3);
    const Floats gradient(values.begin(), values.end());
    for (const double of_norm : {0.01, 0.9, 1.1, 100.0}) {
      const auto max_norm = static_cast<float>(of_norm * norm(values));
      CAPTURE(elements, of_norm);
      CHECK(clip_scale(gradient, max_norm) ==
            Approx(reference_clip(values, static_cast<double>(max_norm))).epsilon(1e-6));
    }
  }
  CHECK(clip_scale({3.0F, 0.0F, -4.0F}, 1.0F) == Approx(0.2).epsilon(1e-6));
  CHECK(clip_scale({3.0F, -4.0F}, 5.1F) == 1.0F);
  CHECK(clip_scale(Floats(100, 0.0F), 1.0F) == 1.0F);
}

TEST_CASE("the norm has the same bits for any number of threads") {
  const Values values = random_values(100003, 5);
  const Floats gradient(values.begin(), values.end());
  CHECK(clip_scale(gradient, 1.0F, 1) == clip_scale(gradient, 1.0F, 3));
}

TEST_CASE("the norm of the largest numbers does not overflow, and a non-finite gradient gives no usable scale") {
  CHECK(clip_scale(Floats(1000, std::numeric_limits<float>::max()), 1.0F) > 0.0F);
  Floats gradient(1000, 1.0F);
  gradient[77] = std::numeric_limits<float>::infinity();
  CHECK(clip_scale(gradient, 1.0F) == 0.0F);  // times infinity gives NaN
  gradient[77] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(clip_scale(gradient, 1.0F)));
}

}  // namespace
}  // namespace arbalest::tests
