#include "dataflow/input/digits/digit_strokes.h"

#include <algorithm>
#include <cstddef>
#include <initializer_list>

#include "engine/base/error.h"

namespace arbalest::dataflow {
namespace {

constexpr int kLinesPerPiece = 4;  // lines of a curve between two of its points

// x, y, x, y ... in hundredths.
using Hundredths = std::initializer_list<int>;

Polyline line(Hundredths coordinates) {
  Polyline points;
  for (const int* at = coordinates.begin(); at != coordinates.end(); at += 2) {
    points.push_back({static_cast<float>(at[0]) / 100.0F, static_cast<float>(at[1]) / 100.0F});
  }
  return points;
}

// A Catmull-Rom spline through the points; the end points are doubled.
Polyline curve(Hundredths through) {
  const Polyline p = line(through);
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
      {{curve({50, 0, 18, 16, 8, 50, 18, 84, 50, 100, 82, 84, 92, 50, 82, 16, 50, 0})}},
      {{curve({55, 0, 30, 20, 22, 55, 30, 88, 50, 100, 72, 82, 78, 45, 70, 12, 55, 0})}},
      {{curve({62, 2, 25, 15, 10, 55, 28, 93, 60, 97, 88, 65, 85, 25, 60, 3, 36, 10})}},
  };
}

Styles one() {
  return {
      // A bar, a bar with a flag, and one with a foot too.
      {{line({50, 0, 50, 100})}},
      {{line({28, 22, 54, 0, 54, 100})}},
      {{line({26, 24, 50, 0, 50, 100}), line({24, 100, 76, 100})}},
  };
}

Styles two() {
  return {
      // With a straight foot, with a loop at the knee, and with a wavy foot.
      {{curve({12, 26, 30, 4, 62, 0, 86, 18, 80, 42, 45, 72, 10, 100}), line({10, 100, 92, 100})}},
      {{curve({16, 22, 45, 0, 80, 16, 74, 46, 42, 80, 18, 97, 8, 86, 24, 78, 55, 93, 94, 96})}},
      {{curve({10, 18, 45, 0, 84, 14, 78, 42, 42, 70, 8, 98}), curve({8, 98, 36, 90, 62, 100, 94, 92})}},
  };
}

Styles three() {
  return {
      // Two bows, a flat top, and bows joined by a small loop.
      {{curve({12, 14, 42, 0, 80, 12, 76, 36, 42, 47}), curve({42, 47, 82, 55, 88, 80, 55, 100, 10, 88})}},
      {{line({12, 0, 84, 0, 44, 40}), curve({44, 40, 80, 48, 90, 74, 60, 98, 10, 90})}},
      {{curve({16, 10, 55, 0, 82, 18, 62, 42, 38, 50, 44, 41, 78, 54, 88, 78, 58, 100, 12, 92})}},
  };
}

Styles four() {
  return {
      // Open with angles, closed, and open with a round corner.
      {{line({26, 0, 10, 58, 92, 58}), line({70, 24, 66, 100})}},
      {{line({68, 100, 68, 0, 6, 66, 96, 66})}},
      {{curve({18, 2, 12, 34, 22, 52, 52, 54, 80, 44}), line({82, 4, 78, 100})}},
  };
}

Styles five() {
  return {
      // With corners, with the top bar drawn apart, and in one sweep.
      {{line({84, 0, 22, 0, 16, 44}), curve({16, 44, 50, 36, 86, 54, 84, 84, 50, 100, 8, 90})}},
      {{line({24, 6, 20, 46}), curve({20, 46, 56, 38, 86, 60, 74, 92, 40, 100, 10, 92}), line({28, 4, 92, 0})}},
      {{curve({90, 2, 56, 2, 28, 6, 20, 34, 34, 44, 68, 46, 86, 68, 70, 94, 36, 100, 8, 90})}},
  };
}

Styles six() {
  return {
      // With a curved back, with a straight one, and with a hook at the top.
      {{curve({72, 0, 36, 22, 14, 58, 22, 92, 56, 100, 84, 80, 74, 56, 44, 52, 17, 72})}},
      {{curve({62, 0, 34, 36, 16, 72, 34, 98, 66, 96, 80, 74, 60, 58, 34, 62, 18, 80})}},
      {{curve({86, 14, 64, 0, 32, 16, 14, 54, 20, 88, 54, 100, 86, 78, 72, 54, 40, 54, 16, 70})}},
  };
}

Styles seven() {
  return {
      // Plain, with a bar, with a serif, and with a curved leg.
      {{line({8, 0, 90, 0, 40, 100})}},
      {{line({8, 2, 90, 0, 38, 100}), line({30, 52, 84, 50})}},
      {{line({10, 18, 12, 2, 90, 2, 44, 100})}},
      {{curve({6, 8, 34, 2, 62, 5, 88, 0}), curve({88, 0, 62, 34, 48, 66, 42, 100})}},
  };
}

Styles eight() {
  return {
      // In one stroke, as two rings, and in one stroke that stays open at the top.
      {{curve({50, 47, 20, 28, 28, 6, 50, 0, 74, 6, 80, 26, 50, 47, 16, 70, 24, 94, 50, 100, 78, 94, 84, 72, 50, 47})}},
      {{curve({50, 46, 22, 36, 22, 10, 50, 0, 78, 10, 78, 36, 50, 46}),
        curve({50, 46, 15, 58, 15, 88, 50, 100, 85, 88, 85, 58, 50, 46})}},
      {{curve({82, 14, 54, 0, 22, 12, 26, 36, 62, 54, 84, 76, 66, 98, 32, 97, 16, 76, 42, 52, 70, 34, 84, 12})}},
  };
}

Styles nine() {
  return {
      // With a straight stem, with a curved tail, and in one stroke with a hook.
      {{curve({82, 24, 58, 0, 24, 8, 16, 34, 40, 52, 70, 44, 82, 24}), line({82, 12, 78, 100})}},
      {{curve({84, 26, 60, 0, 24, 8, 14, 34, 38, 52, 72, 44, 84, 22}),
        curve({84, 18, 86, 50, 74, 84, 46, 100, 18, 94})}},
      {{curve({80, 20, 50, 0, 20, 14, 22, 42, 52, 48, 78, 22, 80, 50, 66, 82, 50, 100})}},
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
