#include "tests/support/golden_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "dataflow/memory/plan.h"
#include "engine/backends/devices.h"
#include "tests/support/catch.h"
#include "tests/support/source_directory.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {

namespace {

using dataflow::NamedTensor;

// Tolerance relative to the norm of a parameter's gradient. A ReLU or maximum that is almost a tie can select another
// element in float32, and errors grow with the number of layers.
constexpr double kShallow = 1e-4;
constexpr double kDeep = 1e-3;
constexpr std::int64_t kMostShallowLayers = 20;
constexpr std::size_t kEntries = 64;  // per tensor
// Tolerance relative to the norm of all gradients together. It covers gradients that are zero in exact arithmetic, such
// as the gradient of a bias in front of a normalization.
constexpr double kFloor = 1e-6;

// splitmix64 of (FNV-1a of a name) + index, as in make_goldens.py.
class RandomWords {
 public:
  explicit RandomWords(const std::string& name) {
    for (const char c : name) seed_ = (seed_ ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }

  std::uint64_t at(std::uint64_t index) const {
    std::uint64_t x = seed_ + (index + 1) * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }
  // An odd multiple of 2^-24 in (-1, 1).
  float uniform(std::uint64_t index) const {
    const auto odd = 2 * static_cast<std::int64_t>(at(index) >> 40U) - (std::int64_t{1} << 24U) + 1;
    return static_cast<float>(odd) * 0x1.0p-24F;
  }

 private:
  std::uint64_t seed_ = 0xCBF29CE484222325U;
};

using Words = std::vector<std::uint32_t>;  // in memory order

// A plane is one channel of one example. Its pixels repeat with `period` in both directions.
struct Planes {
  std::size_t count;
  std::size_t height;
  std::size_t width;
  std::size_t period;
};

Words random_images(const RandomWords& random, const Planes& planes) {
  const std::size_t rows = std::min(planes.height, planes.period);
  const std::size_t columns = std::min(planes.width, planes.period);
  Words images;
  for (std::size_t plane = 0; plane < planes.count; ++plane) {
    for (std::size_t y = 0; y < planes.height; ++y) {
      for (std::size_t x = 0; x < planes.width; ++x) {
        const float value = random.uniform((plane * rows + y % rows) * columns + x % columns);
        images.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(std::sqrt(3.0)) * value));
      }
    }
  }
  return images;
}

Words random_classes(const RandomWords& random, std::size_t count, std::uint64_t classes) {
  Words labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<std::uint32_t>(random.at(i) % classes));
  return labels;
}

Words random_ids(const RandomWords& random, std::size_t count, const std::vector<std::uint64_t>& sizes) {
  Words ids;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<std::uint32_t>(random.at(i) % sizes[i % sizes.size()]));
  }
  return ids;
}

Words random_numbers(const RandomWords& random, std::size_t count) {
  Words labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(std::bit_cast<std::uint32_t>(random.uniform(i)));
  return labels;
}

// Statistics of batch normalization have no gradient.
bool is_trainable(const NamedTensor& tensor) { return tensor.name.find(".running_") == std::string::npos; }

// `shift`: initial shift of batch normalization.
void fill_parameter(NamedTensor& tensor, std::optional<float> shift) {
  const RandomWords random(tensor.name);
  const bool is_weight = tensor.name.ends_with("weight");
  const auto spread = static_cast<float>(std::sqrt(6.0 / static_cast<double>(tensor.shape.elements_per_example())));
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const float value = random.uniform(i);
    if (tensor.shape.rank() > 1) {
      tensor.values[i] = spread * value;
    } else if (shift && is_weight) {
      tensor.values[i] = 1.0F + 0.25F * value;
    } else if (shift) {
      tensor.values[i] = *shift + 0.1F * value;
    } else {
      tensor.values[i] = 0.1F * value;
    }
  }
}

void fill_parameters(std::vector<NamedTensor>& tensors, float shift) {
  std::set<std::string> normalizations;
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name.ends_with(".running_mean")) normalizations.insert(tensor.name.substr(0, tensor.name.rfind('.')));
  }
  for (NamedTensor& tensor : tensors) {
    if (!is_trainable(tensor)) continue;
    const bool is_normalization = normalizations.contains(tensor.name.substr(0, tensor.name.rfind('.')));
    fill_parameter(tensor, is_normalization ? std::optional(shift) : std::nullopt);
  }
}

struct Results {
  double loss = 0.0;
  std::map<std::string, NamedTensor> gradient;
};

Results train(const nlohmann::json& golden, const dataflow::Graph& graph, const std::string& device_name) {
  const auto device = engine::open_device(engine::parse_device(device_name));
  const auto batch = golden.at("batch").get<std::int64_t>();
  const int threads = std::min(device->cores(), 2);
  const dataflow::Plan plan(graph, *device, {.batch = batch, .threads = threads});
  const dataflow::ParameterLayout& layout = plan.parameters();
  const std::size_t vector_bytes = static_cast<std::size_t>(layout.elements()) * sizeof(float);
  engine::Buffer weights = device->allocate(vector_bytes);
  engine::Buffer gradient = device->allocate(vector_bytes);
  engine::Buffer arena = device->allocate(plan.arena_bytes());
  engine::Buffer step = device->allocate(sizeof(engine::StepParameters));
  engine::Buffer result = device->allocate(sizeof(engine::StepResult));

  layout.initialize(*device, 1, weights.as<float>());
  std::vector<NamedTensor> tensors = layout.to_canonical(*device, weights.as<float>());
  fill_parameters(tensors, golden.at("shift").get<float>());
  layout.from_canonical(*device, tensors, weights.as<float>());

  const std::string salt = std::to_string(golden.at("salt").get<int>());
  const RandomWords pixel("image " + salt);
  const RandomWords label("label " + salt);
  const auto examples = static_cast<std::size_t>(batch);
  const auto image = golden.at("image").get<std::vector<std::size_t>>();
  const bool has_ids = golden.contains("ids");
  const Words images =
      has_ids ? random_ids(pixel, examples * image.at(0), golden.at("ids").get<std::vector<std::uint64_t>>())
              : random_images(pixel, {examples * image.at(0), image.at(1), image.at(2),
                                      golden.value("period", std::numeric_limits<std::size_t>::max())});
  const Words labels = has_ids ? random_numbers(label, examples)
                               : random_classes(label, examples, golden.at("classes").get<std::uint64_t>());

  const auto stream = device->create_stream({.name = "golden", .threads = threads});
  const engine::StepParameters parameters;
  engine::StepResult computed;
  stream->copy(step.data(), &parameters, sizeof(parameters), "parameters");
  const auto copy_in = [&](const dataflow::Plan::Input& input, const Words& words) {
    REQUIRE(input.layout.bytes() == words.size() * sizeof(words[0]));
    stream->copy(arena.as<std::byte>() + input.offset, words.data(), input.layout.bytes(), input.name.c_str());
  };
  copy_in(plan.inputs()[0], images);
  copy_in(plan.inputs()[1], labels);
  stream->fill_zero(result.data(), sizeof(engine::StepResult), "result");
  const dataflow::PlanBuffers buffers{.weights = weights.as<float>(),
                                      .gradient = gradient.as<float>(),
                                      .arena = arena.as<std::byte>(),
                                      .step = step.as<engine::StepParameters>(),
                                      .result = result.as<engine::StepResult>()};
  plan.forward(*stream, buffers);
  plan.backward(*stream, buffers);
  stream->copy(&computed, result.data(), sizeof(computed), "result");
  stream->record().synchronize();

  Results results{.loss = static_cast<double>(computed.sums[engine::kLossSum]) / static_cast<double>(batch),
                  .gradient = {}};
  for (NamedTensor& tensor : layout.to_canonical(*device, gradient.as<float>())) {
    std::string name = tensor.name;
    results.gradient.emplace(std::move(name), std::move(tensor));
  }
  return results;
}

double norm(const std::vector<double>& values) {
  return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

struct Tolerance {
  double relative;
  double floor;  // relative to the norm of a whole tensor
};

void check_tensor(const NamedTensor& tensor, const nlohmann::json& golden, const Tolerance& tolerance) {
  const std::vector<double> all(tensor.values.begin(), tensor.values.end());
  const auto expected_norm = golden.at("norm").get<double>();
  CHECK(std::abs(norm(all) - expected_norm) <= tolerance.relative * expected_norm + tolerance.floor);

  const RandomWords place("entries " + tensor.name);
  const auto expected = golden.at("entries").get<std::vector<double>>();
  REQUIRE(expected.size() == std::min(all.size(), kEntries));
  std::vector<double> differences;
  for (std::size_t i = 0; i < expected.size(); ++i) differences.push_back(all[place.at(i) % all.size()] - expected[i]);
  const double share = std::sqrt(static_cast<double>(expected.size()) / static_cast<double>(all.size()));
  CHECK(norm(differences) <= tolerance.relative * norm(expected) + tolerance.floor * share);
}

// Whether the tensor gets the loose tolerance, because later layers take maxima of almost equal values.
bool is_loose(const nlohmann::json& golden, const std::string& tensor) {
  if (!golden.contains("loose")) return false;
  const auto prefixes = golden.at("loose").at("tensors").get<std::vector<std::string>>();
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& prefix) { return tensor.starts_with(prefix); });
}

// Both sides must have the same parameters.
void check_parameters(const Results& results, const nlohmann::json& golden) {
  std::set<std::string> expected;
  for (const auto& [name, values] : golden.at("tensors").items()) expected.insert(name);
  std::set<std::string> found;
  std::size_t elements = 0;
  for (const auto& [name, tensor] : results.gradient) {
    if (!is_trainable(tensor)) continue;
    found.insert(name);
    elements += tensor.values.size();
  }
  REQUIRE(found == expected);
  REQUIRE(elements == golden.at("parameters").get<std::size_t>());
}

nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(source_directory() + "/tests/goldens/" + name + ".json");
  return nlohmann::json::parse(file);
}

}  // namespace

std::string golden_model(const std::string& name) { return read_golden(name).at("model").get<std::string>(); }

void check_golden(const std::string& name, const std::string& device) {
  CAPTURE(name);
  const nlohmann::json golden = read_golden(name);
  engine::Shape image;
  for (const auto& extent : golden.at("image")) image.append(extent.get<std::int64_t>());
  const dataflow::InputDescription input =
      golden.contains("ids") ? dataflow::ratings_input(golden.at("ids").get<std::vector<std::int64_t>>())
                             : dataflow::image_input(image, golden.at("classes").get<std::int64_t>());
  const dataflow::Graph graph = dataflow::Graph::build(input, zoo_layers(golden.at("model").get<std::string>(), input));
  const Results results = train(golden, graph, device);

  check_parameters(results, golden);
  double square_sum = 0.0;
  std::int64_t layers = 0;
  for (const auto& [tensor, values] : golden.at("tensors").items()) {
    const auto of_tensor = values.at("norm").get<double>();
    square_sum += of_tensor * of_tensor;
    // Shortcuts are not counted as layers.
    const bool is_layer = results.gradient.at(tensor).shape.rank() > 1;
    if (is_layer && tensor.find("downsample") == std::string::npos) ++layers;
  }
  const Tolerance tolerance{layers > kMostShallowLayers ? kDeep : kShallow, kFloor * std::sqrt(square_sum)};
  const Tolerance loose{golden.contains("loose") ? golden.at("loose").at("tolerance").get<double>() : 0.0,
                        tolerance.floor};
  CHECK(results.loss == Approx(golden.at("loss").get<double>()).epsilon(tolerance.relative));
  for (const auto& [tensor, values] : golden.at("tensors").items()) {
    CAPTURE(tensor, layers);
    check_tensor(results.gradient.at(tensor), values, is_loose(golden, tensor) ? loose : tolerance);
  }
}

}  // namespace arbalest::tests
