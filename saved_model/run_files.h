// Names of the files in a run's directory.
#pragma once

namespace arbalest::jobs {

inline constexpr const char* kJobFile = "job.txtpb";
inline constexpr const char* kReplayFile = "replay.txtpb";
inline constexpr const char* kKernelsFile = "kernels.txtpb";
inline constexpr const char* kOriginFile = "resumed_from.txt";
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kSummaryFile = "summary.json";
inline constexpr const char* kTensorBoardFolder = "tensorboard";

}  // namespace arbalest::jobs
