// Trains a classifier of digits, asks it about two drawings, reads its weights, and shows how an error arrives.
#include <arbalest/error.h>
#include <arbalest/model.h>
#include <arbalest/training.h>
#include <arbalest/version.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr const char* kJob = R"(
model { zoo { logistic_regression {} } }
data { digits {} }
training { batch_size: 32 max_epochs: 5 }
optimizer { sgd { momentum: 0.9 } }
learning_rate { base: 0.01 }
)";

arbalest::TrainingSummary train() {
  arbalest::TrainingOptions options;
  options.job_text = kJob;
  options.settings = {"learners.per_device.fixed=1"};
  options.output = "runs/digits";
  options.on_epoch = [](const arbalest::EpochResult& epoch) {
    const double accuracy = epoch.metrics.at("test_accuracy");
    std::printf("epoch %d: test accuracy %.2f\n", epoch.epoch, accuracy);
    return accuracy > 0.8 ? arbalest::Next::kStop : arbalest::Next::kGoOn;
  };
  return arbalest::train(options);
}

// Two images of 28 x 28 bytes: a vertical stroke, and a ring.
std::vector<std::uint8_t> drawings() {
  constexpr int kSide = 28;
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) pixels.push_back(y >= 4 && y < 24 && x >= 12 && x < 16 ? 255 : 0);
  }
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int distance = (x - 14) * (x - 14) * 2 + (y - 14) * (y - 14);
      pixels.push_back(distance >= 49 && distance <= 100 ? 255 : 0);
    }
  }
  return pixels;
}

}  // namespace

int main() {
  std::printf("Arbalest %s\n", arbalest::version());
  try {
    const arbalest::TrainingSummary run = train();
    arbalest::Model model(run.directory);
    for (const arbalest::Prediction& prediction : model.predict(drawings(), /*top=*/1)) {
      const arbalest::Prediction::Choice& choice = prediction.top.front();
      std::printf("this is a %s (%.0f %%)\n", choice.label.c_str(), 100.0F * choice.probability);
    }
    const arbalest::Weights weights = model.weights("logits.weight");
    std::printf("%zu weights\n", weights.values.size());

    arbalest::TrainingOptions wrong;
    wrong.job_text = "model { zoo { lennet {} } }\n";
    arbalest::train(wrong);
  } catch (const arbalest::Error& error) {
    std::printf("exit code %d: %s\n", error.exit_code(), error.what());
    return error.kind() == arbalest::ErrorKind::kInvalidJob ? 0 : error.exit_code();
  }
  return 1;
}
