// Templates of the ten digits: strokes in a unit box, with x to the right and y downwards.
#pragma once

#include <vector>

namespace arbalest::dataflow {

struct StrokePoint {
  float x = 0.0F;
  float y = 0.0F;
};

using Polyline = std::vector<StrokePoint>;

// One way to write a digit: its strokes, with curves divided into short lines.
struct DigitStyle {
  std::vector<Polyline> strokes;
};

// The styles of `digit`, in [0, 10); at least three. They are computed by exactly rounded operations only, so they
// have the same bits on every machine.
std::vector<DigitStyle> digit_styles(int digit);

}  // namespace arbalest::dataflow
