// The curves of a run in TensorBoard. Each has a folder of its own, so that curves with the same tag share a chart.
#pragma once

namespace arbalest::jobs {

enum class Curve { kRun, kTraining, kTest, kValidation };
inline constexpr Curve kCurves[] = {Curve::kRun, Curve::kTraining, Curve::kTest, Curve::kValidation};

// Returns the name of the folder below tensorboard/; "" for kRun, which holds the job and its hyper-parameters.
inline const char* folder_of(Curve curve) {
  switch (curve) {
    case Curve::kTraining: return "train";
    case Curve::kTest: return "test";
    case Curve::kValidation: return "validation";
    case Curve::kRun: break;
  }
  return "";
}

}  // namespace arbalest::jobs
