#include "tests/cudnn/zoo_convolutions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dataflow/memory/plan.h"
#include "tests/cudnn/noting_device.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests::cudnn {

namespace {

struct UsualJob {
  const char* model;
  dataflow::InputDescription input;
  std::int64_t examples;  // per mini-batch
};

// Returns models with the batch sizes in configs/, and for ImageNet with the batch size of one of several learners.
std::vector<UsualJob> usual_jobs() {
  const dataflow::InputDescription mnist = dataflow::image_input({1, 28, 28}, 10);
  const dataflow::InputDescription cifar = dataflow::image_input({3, 32, 32}, 10);
  const dataflow::InputDescription imagenet = dataflow::image_input({3, 224, 224}, 1000);
  return {{"lenet {}", mnist, 32},
          {"lenet {}", mnist, 16},
          {"lenet {}", dataflow::image_input({3, 28, 28}, 10), 16},
          {"resnet_cifar { depth: 32 }", cifar, 64},
          {"resnet_cifar { depth: 20 }", cifar, 16},
          {"cifar_quick {}", cifar, 64},
          {"vgg { depth: 16 batch_norm: true head: CIFAR }", dataflow::image_input({3, 32, 32}, 100), 64},
          {"alexnet {}", imagenet, 32},
          {"vgg { depth: 16 }", imagenet, 32},
          {"resnet { depth: 18 }", imagenet, 32},
          {"resnet { depth: 50 }", imagenet, 32},
          {"inception_v3 {}", dataflow::image_input({3, 299, 299}, 1000), 32},
          {"mobilenet_v1 {}", imagenet, 32}};
}

}  // namespace

std::vector<ZooConvolution> zoo_convolutions(engine::Precision precision) {
  std::vector<ZooConvolution> found;
  for (const UsualJob& job : usual_jobs()) {
    const auto graph = dataflow::Graph::build(job.input, zoo_layers(job.model, job.input));
    NotingDevice device;
    const dataflow::Plan plan(graph, device, {.batch = job.examples, .precision = precision});
    for (const NotingDevice::Note& note : device.notes()) {
      const auto same = [&](const ZooConvolution& other) { return other.convolution == note.convolution; };
      const auto place = std::ranges::find_if(found, same);
      if (place != found.end()) {
        place->input_gradient |= note.input_gradient;
      } else {
        found.push_back(
            {fmt::format("{}, {} examples", job.model, job.examples), note.convolution, note.input_gradient});
      }
    }
  }
  return found;
}

}  // namespace arbalest::tests::cudnn
