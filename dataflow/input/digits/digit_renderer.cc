// The bytes are the same on every x86-64 machine. The code uses only additions, subtractions, multiplications,
// divisions, square roots and conversions, whose rounding IEEE 754 defines. The build forbids fused operations
// (-ffp-contract=off) and reassociation (no -ffast-math). No function of libm is used, because its last bit may differ:
// a rotation is computed from the tangent of half its angle, a bell curve from a sum of uniform numbers.
#include "dataflow/input/digits/digit_renderer.h"

#include <algorithm>
#include <array>
#include <experimental/simd>

namespace arbalest::dataflow {
namespace {

// Strength of the distortions, chosen so that a linear model stays below 93 % (it reaches 87 %) and LeNet clearly
// exceeds 99 %. Lengths are in pixels, angles are tangents, other values are relative to the digit's size.
constexpr float kHeight = 18.5F;
constexpr float kAspect = 0.72F;  // width / height
constexpr float kScaleSpread = 0.16F;
constexpr float kAspectSpread = 0.20F;
constexpr float kHalfRotation = 0.12F;  // tangent of half the angle: 13.7 degrees
constexpr float kSlant = 0.30F;
constexpr float kShift = 2.9F;
constexpr float kElastic = 0.06F;
constexpr float kThinnest = 0.75F;  // half of the stroke's width
constexpr float kThickest = 1.75F;
constexpr float kEdge = 1.0F;  // width over which a stroke fades out
constexpr float kDimmest = 0.70F;
constexpr float kStrongestNoise = 0.24F;  // as a part of half the range of bytes

constexpr int kGrid = 4;  // nodes per side of the elastic distortion's grid

constexpr int kLanes = 8;  // pixels that are computed at once
using Lanes = std::experimental::fixed_size_simd<float, kLanes>;
using std::experimental::element_aligned;

class Uniform {
 public:
  explicit Uniform(RandomSequence& random) : random_(random) {}

  // Uniform in [low, high), in steps of 2^-24 of the range.
  float between(float low, float high) noexcept {
    return low + (high - low) * (static_cast<float>(random_.next() >> 40U) * 0x1p-24F);
  }
  float around_zero(float most) noexcept { return between(-most, most); }
  // A bell curve over [-2 spread, 2 spread]: the sum of four uniform numbers, standard deviation 0.58 spread.
  float bell(float spread) noexcept {
    return around_zero(0.5F * spread) + around_zero(0.5F * spread) + around_zero(0.5F * spread) +
           around_zero(0.5F * spread);
  }

 private:
  RandomSequence& random_;
};

// Maps points of the unit box to pixels: elastic displacement, then an affine map.
class Distortion {
 public:
  explicit Distortion(Uniform& uniform) {
    for (StrokePoint& node : nodes_) {
      node.x = uniform.bell(kElastic);
      node.y = uniform.bell(kElastic);
    }
    const float scale = kHeight * (1.0F + uniform.around_zero(kScaleSpread));
    const float width = scale * kAspect * (1.0F + uniform.around_zero(kAspectSpread));
    const float slant = uniform.around_zero(kSlant);
    const float half = uniform.around_zero(kHalfRotation);
    const float cosine = (1.0F - half * half) / (1.0F + half * half);
    const float sine = 2.0F * half / (1.0F + half * half);
    // Product of rotation, slant and scale.
    xx_ = cosine * width;
    xy_ = (cosine * slant - sine) * scale;
    yx_ = sine * width;
    yy_ = (sine * slant + cosine) * scale;
    const float center = 0.5F * static_cast<float>(kDigitSide - 1);
    x_ = center + uniform.around_zero(kShift);
    y_ = center + uniform.around_zero(kShift);
  }

  StrokePoint operator()(StrokePoint p) const noexcept {
    const StrokePoint shift = displacement(p);
    const float u = p.x + shift.x - 0.5F;
    const float v = p.y + shift.y - 0.5F;
    return {x_ + xx_ * u + xy_ * v, y_ + yx_ * u + yy_ * v};
  }

 private:
  // Interpolates between the grid's nodes by 3t^2 - 2t^3, so that strokes get no corners.
  StrokePoint displacement(StrokePoint p) const noexcept {
    const float gx = std::clamp(p.x, 0.0F, 1.0F) * static_cast<float>(kGrid - 1);
    const float gy = std::clamp(p.y, 0.0F, 1.0F) * static_cast<float>(kGrid - 1);
    const int column = std::min(static_cast<int>(gx), kGrid - 2);
    const int row = std::min(static_cast<int>(gy), kGrid - 2);
    const auto smooth = [](float t) { return t * t * (3.0F - 2.0F * t); };
    const float tx = smooth(gx - static_cast<float>(column));
    const float ty = smooth(gy - static_cast<float>(row));
    const auto node = [&](int r, int c) { return nodes_[static_cast<std::size_t>((row + r) * kGrid + column + c)]; };
    const auto mix = [](float a, float b, float t) { return a + (b - a) * t; };
    return {mix(mix(node(0, 0).x, node(0, 1).x, tx), mix(node(1, 0).x, node(1, 1).x, tx), ty),
            mix(mix(node(0, 0).y, node(0, 1).y, tx), mix(node(1, 0).y, node(1, 1).y, tx), ty)};
  }

  std::array<StrokePoint, kGrid * kGrid> nodes_;
  float xx_, xy_, yx_, yy_, x_, y_;
};

// Squared distance from each pixel to the nearest stroke, exact up to `reach`.
class DistanceField {
 public:
  explicit DistanceField(float reach) : reach_(reach) { squares_.fill(reach * reach); }

  void add(StrokePoint a, StrokePoint b) noexcept {
    const float dx = b.x - a.x;
    const float dy = b.y - a.y;
    const float length_square = dx * dx + dy * dy;
    const float inverse = length_square > 0.0F ? 1.0F / length_square : 0.0F;
    const int left = pixel(std::min(a.x, b.x) - reach_);
    const int right = pixel(std::max(a.x, b.x) + reach_ + 1.0F);
    const int top = pixel(std::min(a.y, b.y) - reach_);
    const int bottom = pixel(std::max(a.y, b.y) + reach_ + 1.0F);
    for (int x = left; x < right; x += kLanes) {
      const int first = std::min(x, kDigitSide - kLanes);  // a pixel may be computed twice
      const Lanes px([&](int lane) { return static_cast<float>(first + lane) - a.x; });
      for (int y = top; y < bottom; ++y) {
        const float py = static_cast<float>(y) - a.y;
        const Lanes along = clamp((px * dx + py * dy) * inverse, Lanes(0.0F), Lanes(1.0F));
        const Lanes ex = px - along * dx;
        const Lanes ey = py - along * dy;
        float* run = squares_.data() + y * kDigitSide + first;
        min(Lanes(run, element_aligned), ex * ex + ey * ey).copy_to(run, element_aligned);
      }
    }
  }

  // Returns the distances of kLanes pixels, in the order of rows.
  Lanes distances(std::size_t first) const noexcept { return sqrt(Lanes(squares_.data() + first, element_aligned)); }

 private:
  static int pixel(float coordinate) noexcept {
    return static_cast<int>(std::clamp(coordinate, 0.0F, static_cast<float>(kDigitSide)));
  }

  float reach_;
  std::array<float, kDigitPixels> squares_;
};

}  // namespace

void render_digit(const DigitStyle& style, RandomSequence& random,
                  std::span<std::uint8_t, kDigitPixels> image) noexcept {
  Uniform uniform(random);
  const Distortion distort(uniform);
  const float half_width = uniform.between(kThinnest, kThickest);
  const float brightness = uniform.between(kDimmest, 1.0F) * 255.0F;
  const float noise = uniform.between(0.0F, kStrongestNoise);

  DistanceField field(half_width + 0.5F * kEdge);
  for (const Polyline& stroke : style.strokes) {
    StrokePoint from = distort(stroke.front());
    for (std::size_t i = 1; i < stroke.size(); ++i) {
      const StrokePoint to = distort(stroke[i]);
      field.add(from, to);
      from = to;
    }
  }
  static_assert(kDigitPixels % kLanes == 0);
  for (std::size_t first = 0; first < kDigitPixels; first += kLanes) {
    const std::uint64_t bits = random.next();  // one byte of noise for each pixel
    const Lanes ink = clamp((half_width - field.distances(first)) / kEdge + 0.5F, Lanes(0.0F), Lanes(1.0F));
    const Lanes grain([&](int lane) { return static_cast<float>(bits >> (8 * lane) & 0xFFU) - 127.5F; });
    const Lanes value = clamp(ink * brightness + grain * noise + 0.5F, Lanes(0.0F), Lanes(255.0F));
    for (std::size_t lane = 0; lane < kLanes; ++lane) image[first + lane] = static_cast<std::uint8_t>(value[lane]);
  }
}

}  // namespace arbalest::dataflow
