// Predicts with the saved model of a run, as the command `arbalest predict` does, and reads its weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arbalest/api.h"

namespace arbalest {

enum class InputKind {
  kImage,    // images [channels, height, width]
  kNumbers,  // float32 numbers [channels, height, width], as in the arrays that the model was trained on
  kIds       // int32 ids [columns]
};

// The input of a model.
struct ModelInput {
  InputKind kind = InputKind::kImage;
  std::vector<std::int64_t> shape{};  // of one example
  // One number for each channel, or one for all: the model reads (byte / 255 - mean) / stddev, or (number - mean) /
  // stddev. predict() does this.
  std::vector<float> mean{};
  std::vector<float> stddev{};
};

struct Prediction {
  struct Choice {
    std::int64_t output = 0;  // number of the class, from 0
    std::string label{};      // its name
    float probability = 0.0F;
  };

  std::vector<Choice> top{};     // the most probable classes, in descending order
  std::optional<float> score{};  // of models that predict a number, instead of `top`
  std::string error{};           // why there is neither, such as an unreadable image; "" if there is one
};

// The view of a tensor of weights. It is valid as long as its model.
struct Weights {
  std::string_view name{};
  std::span<const std::int64_t> shape{};  // convolutions: [outputs, inputs, height, width]
  std::span<const float> values{};
};

struct ModelOptions {
  std::string checkpoint{};            // "": the final model; or "best", "last", or the number of a checkpoint
  std::vector<std::string> devices{};  // "cpu", "cpu:0-1", "cuda:0"; empty: those of the run, or of this machine
};

// A model in memory. One thread may use it at a time; several models may be used at once.
class ARBALEST_API Model {
 public:
  // `run`: the directory of a run, or of one of its checkpoints. Throws Error.
  explicit Model(const std::string& run, const ModelOptions& options = {});
  ~Model();
  Model(Model&& other) noexcept;
  Model& operator=(Model&& other) noexcept;

  const ModelInput& input() const noexcept;
  // The names of the classes, or their numbers if they have no names.
  const std::vector<std::string>& labels() const noexcept;
  // Warnings for the user, such as that this machine lacks the device of the run, or that job.txtpb names other classes
  // than the saved model.
  const std::vector<std::string>& warnings() const noexcept;

  // Predict one example or many, one after the other in memory. The first call with another number of examples may
  // take longer, because the model is prepared for it. `top`: most classes of a prediction. Throw Error if the model
  // reads something else or `examples` does not end with a whole example.
  std::vector<Prediction> predict(std::span<const std::uint8_t> examples, int top = 5);  // bytes of images
  // Pixels of images from 0 to 1, which are bytes / 255; or numbers.
  std::vector<Prediction> predict(std::span<const float> examples, int top = 5);
  std::vector<Prediction> predict(std::span<const std::int32_t> examples, int top = 5);  // ids
  // JPEG, PNG and WebP files, which are turned upright, scaled and cut as in evaluation. warnings() then also names
  // damaged EXIF orientations.
  std::vector<Prediction> predict_files(std::span<const std::string> files, int top = 5);

  // All tensors of the model file, in its order.
  std::vector<Weights> weights() const;
  // Throws Error if there is no tensor of that name.
  Weights weights(std::string_view name) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace arbalest
