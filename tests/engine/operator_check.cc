#include "tests/engine/operator_check.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {

using engine::Device;
using engine::Layout;
using engine::OperatorMode;
using engine::Shape;

namespace {

constexpr std::int64_t kMostDifferences = 120;  // of one tensor
constexpr double kStep = 1e-5;                  // of central differences

using Tensors = std::vector<Values>;

// The inputs and then the parameters.
Tensors operands_of(const OperatorCheck& check, engine::DType dtype) {
  Tensors all;
  for (const Shape& shape : check.inputs) {
    Values values = random_values(shape.elements(), static_cast<unsigned>(all.size()) + 1);
    for (double& value : values) value = check.middle + check.spread * value;
    all.push_back(representable(std::move(values), dtype));
  }
  for (const Shape& shape : check.parameters) {
    all.push_back(random_values(shape.elements(), static_cast<unsigned>(all.size()) + 1));
  }
  return all;
}

Values reference_of(const OperatorCheck& check, const Tensors& operands) {
  const auto parameters = operands.begin() + static_cast<std::ptrdiff_t>(check.inputs.size());
  return check.reference(Tensors(operands.begin(), parameters), Tensors(parameters, operands.end()));
}

// One gradient of the reference is known at some elements, and by its product with a random direction.
struct ExpectedGradient {
  std::vector<std::size_t> elements;
  Values at_elements;
  Values direction;
  double along = 0.0;
};

ExpectedGradient expected_gradient(const OperatorCheck& check, const Tensors& operands, std::size_t which,
                                   const Values& output_gradient) {
  Tensors moved = operands;
  const auto loss = [&](const Values& point) {
    moved[which] = point;
    return dot(reference_of(check, moved), output_gradient);
  };
  ExpectedGradient expected;
  const auto count = static_cast<std::int64_t>(operands[which].size());
  const std::int64_t differences = std::min(count, kMostDifferences);
  for (std::int64_t d = 0; d < differences; ++d) {
    const auto at = static_cast<std::size_t>(d * count / differences);
    expected.elements.push_back(at);
    const auto along_axis = [&](const Values& x) {
      Values point = operands[which];
      point[at] = x[0];
      return loss(point);
    };
    expected.at_elements.push_back(central_differences(along_axis, {operands[which][at]}, kStep)[0]);
  }
  expected.direction = random_values(count, 99);
  const auto along_direction = [&](const Values& x) {
    Values point = operands[which];
    for (std::size_t e = 0; e < point.size(); ++e) point[e] += x[0] * expected.direction[e];
    return loss(point);
  };
  expected.along = central_differences(along_direction, {0.0}, kStep)[0];
  return expected;
}

void check_gradient(const Floats& actual, const ExpectedGradient& expected, double tolerance) {
  REQUIRE(actual.size() == expected.direction.size());
  Values at_elements;
  for (const std::size_t e : expected.elements) at_elements.push_back(static_cast<double>(actual[e]));
  CHECK(relative_error(at_elements, expected.at_elements) < tolerance);
  const Values values(actual.begin(), actual.end());
  // A sum of terms with both signs may be near 0, although the terms are not.
  CHECK(std::abs(dot(values, expected.direction) - expected.along) <=
        tolerance * std::max(norm(values), 1.0) * norm(expected.direction));
}

// Messages would be long if they listed the numbers, hence the parentheses.
void check_same(const OperatorRun& run, const OperatorRun& base) {
  CHECK(run.padding_is_zero);
  CHECK((run.output == base.output));
  CHECK((run.input_gradient == base.input_gradient));
  CHECK((run.other_gradients == base.other_gradients));
  CHECK((run.parameter_gradients == base.parameter_gradients));
}

// The checks of one tensor type.
class TypeCheck {
 public:
  TypeCheck(const OperatorCheck& check, const Arithmetic& in, Device& device)
      : check_(check), in_(in), device_(device), operands_(operands_of(check, in.dtype)) {
    output_ = reference_of(check, operands_);
    output_gradient_ = random_values(static_cast<std::int64_t>(output_.size()), 77, in.dtype);
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      gradients_.push_back(expected_gradient(check, operands_, k, output_gradient_));
    }
  }

  void run(bool native) {
    OperatorCase of = make_case(native);
    CHECK(device_.prepare(of.spec, {})->traits().saved_bytes <= check_.most_saved_bytes);
    const OperatorRun base = run_operator(device_, of, {});
    check_values(base);
    for (const int threads : thread_counts()) {
      for (const bool in_place : {false, true}) {
        CAPTURE(threads, in_place);
        of.in_place = in_place;
        of.replayed = !in_place;  // a second pass in place would read the output of the first
        check_same(run_operator(device_, of, {.threads = threads}), base);
        const OperatorRun inference = run_operator(device_, of, {.mode = OperatorMode::kInference, .threads = threads});
        CHECK(inference.padding_is_zero);
        CHECK((inference.output == base.output));
      }
    }
    const OperatorRun first_layer = run_operator(device_, of, {.input_gradient = false});
    CHECK(first_layer.input_gradient.empty());
    CHECK((first_layer.parameter_gradients == base.parameter_gradients));
  }

 private:
  OperatorCase make_case(bool native) const {
    std::vector<Layout> layouts;
    for (const Shape& shape : check_.inputs) {
      layouts.push_back(native && shape.rank() == 4 ? native_image_layout(device_, shape, in_.dtype)
                                                    : device_.plain_layout(shape, in_.dtype));
    }
    OperatorCase of{.spec = check_.spec(layouts), .input = layouts[0], .input_values = operands_[0]};
    for (std::size_t k = 1; k < layouts.size(); ++k) of.others.push_back({layouts[k], operands_[k]});
    of.parameters.assign(operands_.begin() + static_cast<std::ptrdiff_t>(layouts.size()), operands_.end());
    of.output_gradient = output_gradient_;
    return of;
  }

  void check_values(const OperatorRun& run) const {
    CHECK(run.padding_is_zero);
    CHECK(relative_error(run.output, output_) < in_.tolerance);
    std::vector<Floats> gradients{run.input_gradient};
    gradients.insert(gradients.end(), run.other_gradients.begin(), run.other_gradients.end());
    gradients.insert(gradients.end(), run.parameter_gradients.begin(), run.parameter_gradients.end());
    REQUIRE(gradients.size() == gradients_.size());
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      CAPTURE(k);
      check_gradient(gradients[k], gradients_[k], in_.tolerance);
    }
  }

  const OperatorCheck& check_;
  const Arithmetic& in_;
  Device& device_;
  Tensors operands_;
  Values output_;
  Values output_gradient_;
  std::vector<ExpectedGradient> gradients_;  // of inputs and parameters
};

}  // namespace

void check_operator(const OperatorCheck& check) {
  CAPTURE(check.name);
  const std::unique_ptr<Device> device = open_test_device();
  const bool has_images = std::ranges::any_of(check.inputs, [](const Shape& shape) { return shape.rank() == 4; });
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name);
    TypeCheck of_type(check, in, *device);
    of_type.run(false);
    if (has_images) of_type.run(true);
  }
}

}  // namespace arbalest::tests
