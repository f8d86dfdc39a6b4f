// A value of an ONNX graph while the graph is imported.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/shape.h"
#include "interchange/import/graph/constant.h"

namespace arbalest::jobs {

inline constexpr int kImageSource = -1;  // source of the model's input

// The output of a layer, or the model's input.
struct Tensor {
  // The order of the dimensions in the file.
  enum class View {
    kSame,          // [n, c, h, w] or [n, f], as here
    kLastChannels,  // [n, h, w, c] there, [n, c, h, w] here
    kLine,          // [n, c, w] there, [n, c, 1, w] here
    kVector         // [n, c] there, [n, c, 1, 1] here
  };

  int source = kImageSource;  // index of the layer
  engine::Shape shape = {};   // here, for one example
  View view = View::kSame;
  // Features that were flattened from [h, w, c] there are in the order [c, h, w] here. None: the order is the same.
  std::vector<std::int64_t> channels_first = {};  // c, h, w
  bool is_positive = false;                       // no element is below 0
  bool is_read_once = true;                       // nothing else reads the source

  int rank() const noexcept { return view == View::kVector ? 2 : view == View::kLine ? 3 : shape.rank(); }
  // Axis of the channels in the file.
  int channel_axis() const noexcept { return view == View::kLastChannels ? 3 : 1; }

  // The shape in the file, with kFreeBatch.
  std::vector<std::int64_t> dims() const {
    std::vector<std::int64_t> extents(shape.begin(), shape.end());
    extents[0] = kFreeBatch;
    if (view == View::kLastChannels) return {extents[0], extents[2], extents[3], extents[1]};
    if (view == View::kLine) extents.erase(extents.begin() + 2);
    if (view == View::kVector) extents.resize(2);
    return extents;
  }
};

// A tensor with pixels around it, for the window that reads it.
struct Padded {
  Tensor tensor = {};
  std::array<std::int64_t, 4> pads{};  // above, left, below, right
  float value = 0.0F;
  bool repeats_edges = false;  // instead of having the value
};

// A column of the model's ids.
struct IdColumn {
  std::int64_t column = 0;
};

inline constexpr float kGateShift = 3.0F;  // of hard swish, x relu6(x + 3) / 6

// Part of a formula that becomes one layer.
struct Formula {
  enum class Kind {
    kScaled,      // factor * x
    kErf,         // erf(factor * x)
    kErfPlusOne,  // 1 + erf(factor * x)
    kGeluTimes,   // factor * x * (1 + erf(x / sqrt 2))
    kShifted,     // x + 3
    kGate,        // factor * relu6(x + 3)
    kGateTimes,   // factor * x * relu6(x + 3)
    kProduct      // x * other
  };

  Kind kind = Kind::kScaled;
  Tensor x = {};
  float factor = 1.0F;
  Tensor other = {};
};

// Random numbers on their way to dropout, or numbers of which only the shape counts.
struct Noise {
  enum class Stage {
    kShape,    // no random numbers yet
    kUniform,  // in [0, 1)
    kKept      // factor where the number is below `keep`, and 0 elsewhere
  };

  Stage stage = Stage::kShape;
  std::vector<std::int64_t> dims = {};  // in the file, with kFreeBatch
  float keep = 1.0F;
  float factor = 1.0F;
};

// The value cannot be imported: a refused node writes it, or, if there is a reason, the file itself holds it.
struct Unknown {
  std::string reason = {};
};

using Value = std::variant<Unknown, std::shared_ptr<const Constant>, Tensor, Padded, IdColumn, Formula, Noise>;

}  // namespace arbalest::jobs
