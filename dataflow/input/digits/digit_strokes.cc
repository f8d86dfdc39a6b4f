#include "dataflow/input/digits/digit_strokes.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "engine/error.h"

namespace arbalest::dataflow {
namespace {

constexpr int kLinesPerPiece = 4;  // lines of a curve between two of its points

Polyline line(std::initializer_list<StrokePoint> points) { return points; }

// A Catmull-Rom spline through the points; the end points are doubled.
Polyline curve(std::initializer_list<StrokePoint> through) {
  const std::vector<StrokePoint> p(through);
  const auto at = [&](std::size_t i) { return p[std::min(std::max<std::size_t>(i, 1) - 1, p.size() - 1)]; };
  Polyline out{p.front()};
  for (std::size_t i = 1; i < p.size(); ++i) {
    const StrokePoint a = at(i - 1);
    const StrokePoint b = at(i);
    const StrokePoint c = at(i + 1);
    const StrokePoint d = at(i + 2);
    for (int step = 1; step <= kLinesPerPiece; ++step) {
      const float t = static_cast<float>(step) / static_cast<float>(kLinesPerPiece);
      const auto blend = [t](float v0, float v1, float v2, float v3) {
        const float linear = v2 - v0;
        const float square = 2.0F * v0 - 5.0F * v1 + 4.0F * v2 - v3;
        const float cube = 3.0F * (v1 - v2) + v3 - v0;
        return 0.5F * (2.0F * v1 + t * (linear + t * (square + t * cube)));
      };
      out.push_back({blend(a.x, b.x, c.x, d.x), blend(a.y, b.y, c.y, d.y)});
    }
  }
  return out;
}

using Styles = std::vector<DigitStyle>;

Styles zero() {
  return {
      // A round oval, a narrow one, and one whose end crosses its start.
      {{curve({{.50F, .0F},
               {.18F, .16F},
               {.08F, .50F},
               {.18F, .84F},
               {.50F, 1.F},
               {.82F, .84F},
               {.92F, .50F},
               {.82F, .16F},
               {.50F, .0F}})}},
      {{curve({{.55F, .0F},
               {.30F, .20F},
               {.22F, .55F},
               {.30F, .88F},
               {.50F, 1.F},
               {.72F, .82F},
               {.78F, .45F},
               {.70F, .12F},
               {.55F, .0F}})}},
      {{curve({{.62F, .02F},
               {.25F, .15F},
               {.10F, .55F},
               {.28F, .93F},
               {.60F, .97F},
               {.88F, .65F},
               {.85F, .25F},
               {.60F, .03F},
               {.36F, .10F}})}},
  };
}

Styles one() {
  return {
      // A bar, a bar with a flag, and one with a foot too.
      {{line({{.50F, .0F}, {.50F, 1.F}})}},
      {{line({{.28F, .22F}, {.54F, .0F}, {.54F, 1.F}})}},
      {{line({{.26F, .24F}, {.50F, .0F}, {.50F, 1.F}}), line({{.24F, 1.F}, {.76F, 1.F}})}},
  };
}

Styles two() {
  return {
      // With a straight foot, with a loop at the knee, and with a wavy foot.
      {{curve({{.12F, .26F}, {.30F, .04F}, {.62F, .0F}, {.86F, .18F}, {.80F, .42F}, {.45F, .72F}, {.10F, 1.F}}),
        line({{.10F, 1.F}, {.92F, 1.F}})}},
      {{curve({{.16F, .22F},
               {.45F, .0F},
               {.80F, .16F},
               {.74F, .46F},
               {.42F, .80F},
               {.18F, .97F},
               {.08F, .86F},
               {.24F, .78F},
               {.55F, .93F},
               {.94F, .96F}})}},
      {{curve({{.10F, .18F}, {.45F, .0F}, {.84F, .14F}, {.78F, .42F}, {.42F, .70F}, {.08F, .98F}}),
        curve({{.08F, .98F}, {.36F, .90F}, {.62F, 1.F}, {.94F, .92F}})}},
  };
}

Styles three() {
  return {
      // Two bows, a flat top, and bows joined by a small loop.
      {{curve({{.12F, .14F}, {.42F, .0F}, {.80F, .12F}, {.76F, .36F}, {.42F, .47F}}),
        curve({{.42F, .47F}, {.82F, .55F}, {.88F, .80F}, {.55F, 1.F}, {.10F, .88F}})}},
      {{line({{.12F, .0F}, {.84F, .0F}, {.44F, .40F}}),
        curve({{.44F, .40F}, {.80F, .48F}, {.90F, .74F}, {.60F, .98F}, {.10F, .90F}})}},
      {{curve({{.16F, .10F},
               {.55F, .0F},
               {.82F, .18F},
               {.62F, .42F},
               {.38F, .50F},
               {.44F, .41F},
               {.78F, .54F},
               {.88F, .78F},
               {.58F, 1.F},
               {.12F, .92F}})}},
  };
}

Styles four() {
  return {
      // Open with angles, closed, and open with a round corner.
      {{line({{.26F, .0F}, {.10F, .58F}, {.92F, .58F}}), line({{.70F, .24F}, {.66F, 1.F}})}},
      {{line({{.68F, 1.F}, {.68F, .0F}, {.06F, .66F}, {.96F, .66F}})}},
      {{curve({{.18F, .02F}, {.12F, .34F}, {.22F, .52F}, {.52F, .54F}, {.80F, .44F}}),
        line({{.82F, .04F}, {.78F, 1.F}})}},
  };
}

Styles five() {
  return {
      // With corners, with the top bar drawn apart, and in one sweep.
      {{line({{.84F, .0F}, {.22F, .0F}, {.16F, .44F}}),
        curve({{.16F, .44F}, {.50F, .36F}, {.86F, .54F}, {.84F, .84F}, {.50F, 1.F}, {.08F, .90F}})}},
      {{line({{.24F, .06F}, {.20F, .46F}}),
        curve({{.20F, .46F}, {.56F, .38F}, {.86F, .60F}, {.74F, .92F}, {.40F, 1.F}, {.10F, .92F}}),
        line({{.28F, .04F}, {.92F, .0F}})}},
      {{curve({{.90F, .02F},
               {.56F, .02F},
               {.28F, .06F},
               {.20F, .34F},
               {.34F, .44F},
               {.68F, .46F},
               {.86F, .68F},
               {.70F, .94F},
               {.36F, 1.F},
               {.08F, .90F}})}},
  };
}

Styles six() {
  return {
      // With a curved back, with a straight one, and with a hook at the top.
      {{curve({{.72F, .0F},
               {.36F, .22F},
               {.14F, .58F},
               {.22F, .92F},
               {.56F, 1.F},
               {.84F, .80F},
               {.74F, .56F},
               {.44F, .52F},
               {.17F, .72F}})}},
      {{curve({{.62F, .0F},
               {.34F, .36F},
               {.16F, .72F},
               {.34F, .98F},
               {.66F, .96F},
               {.80F, .74F},
               {.60F, .58F},
               {.34F, .62F},
               {.18F, .80F}})}},
      {{curve({{.86F, .14F},
               {.64F, .0F},
               {.32F, .16F},
               {.14F, .54F},
               {.20F, .88F},
               {.54F, 1.F},
               {.86F, .78F},
               {.72F, .54F},
               {.40F, .54F},
               {.16F, .70F}})}},
  };
}

Styles seven() {
  return {
      // Plain, with a bar, with a serif, and with a curved leg.
      {{line({{.08F, .0F}, {.90F, .0F}, {.40F, 1.F}})}},
      {{line({{.08F, .02F}, {.90F, .0F}, {.38F, 1.F}}), line({{.30F, .52F}, {.84F, .50F}})}},
      {{line({{.10F, .18F}, {.12F, .02F}, {.90F, .02F}, {.44F, 1.F}})}},
      {{curve({{.06F, .08F}, {.34F, .02F}, {.62F, .05F}, {.88F, .0F}}),
        curve({{.88F, .0F}, {.62F, .34F}, {.48F, .66F}, {.42F, 1.F}})}},
  };
}

Styles eight() {
  return {
      // In one stroke, as two rings, and in one stroke that stays open at the top.
      {{curve({{.50F, .47F},
               {.20F, .28F},
               {.28F, .06F},
               {.50F, .0F},
               {.74F, .06F},
               {.80F, .26F},
               {.50F, .47F},
               {.16F, .70F},
               {.24F, .94F},
               {.50F, 1.F},
               {.78F, .94F},
               {.84F, .72F},
               {.50F, .47F}})}},
      {{curve({{.50F, .46F}, {.22F, .36F}, {.22F, .10F}, {.50F, .0F}, {.78F, .10F}, {.78F, .36F}, {.50F, .46F}}),
        curve({{.50F, .46F}, {.15F, .58F}, {.15F, .88F}, {.50F, 1.F}, {.85F, .88F}, {.85F, .58F}, {.50F, .46F}})}},
      {{curve({{.82F, .14F},
               {.54F, .0F},
               {.22F, .12F},
               {.26F, .36F},
               {.62F, .54F},
               {.84F, .76F},
               {.66F, .98F},
               {.32F, .97F},
               {.16F, .76F},
               {.42F, .52F},
               {.70F, .34F},
               {.84F, .12F}})}},
  };
}

Styles nine() {
  return {
      // With a straight stem, with a curved tail, and in one stroke with a hook.
      {{curve({{.82F, .24F}, {.58F, .0F}, {.24F, .08F}, {.16F, .34F}, {.40F, .52F}, {.70F, .44F}, {.82F, .24F}}),
        line({{.82F, .12F}, {.78F, 1.F}})}},
      {{curve({{.84F, .26F}, {.60F, .0F}, {.24F, .08F}, {.14F, .34F}, {.38F, .52F}, {.72F, .44F}, {.84F, .22F}}),
        curve({{.84F, .18F}, {.86F, .50F}, {.74F, .84F}, {.46F, 1.F}, {.18F, .94F}})}},
      {{curve({{.80F, .20F},
               {.50F, .0F},
               {.20F, .14F},
               {.22F, .42F},
               {.52F, .48F},
               {.78F, .22F},
               {.80F, .50F},
               {.66F, .82F},
               {.50F, 1.F}})}},
  };
}

}  // namespace

std::vector<DigitStyle> digit_styles(int digit) {
  using Maker = Styles (*)();
  constexpr Maker kMakers[] = {zero, one, two, three, four, five, six, seven, eight, nine};
  ARBALEST_CHECK(digit >= 0 && digit < 10);
  return kMakers[digit]();
}

}  // namespace arbalest::dataflow
