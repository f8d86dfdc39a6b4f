#include "train/sparse/factorization_model.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "dataflow/graph.h"
#include "dataflow/layers/initializer.h"
#include "dataflow/parameter_rules.h"
#include "engine/base/error.h"
#include "engine/host/memory_budget.h"
#include "engine/host/pool.h"
#include "engine/host/topology.h"
#include "train/data/dataset_loading.h"

namespace arbalest::jobs {

using dataflow::NamedTensor;
using scheduler::FactorizationModel;

namespace {

const NamedTensor& find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  ARBALEST_CHECK(found != tensors.end());
  return *found;
}

// Calls copy(tensor, number in the tensor, number in the model's vector) for every weight of the model.
template <typename Tensors>
void for_each_weight(Tensors& tensors, const FactorizationModel& model, const auto& copy) {
  const auto width = static_cast<std::size_t>(model.width);
  for (auto& tensor : tensors) {
    const std::size_t count = tensor.values.size();
    const auto rows_from = [&](std::size_t first, std::size_t columns) {
      for (std::size_t i = 0; i < count; ++i) copy(tensor, i, first + i / columns * model.row() + i % columns);
    };
    if (tensor.name == "user.weight") rows_from(model.user_row(0), width);
    if (tensor.name == "item.weight") rows_from(model.item_row(0), width);
    if (tensor.name == "user_bias.weight") rows_from(model.user_row(0) + width, 1);
    if (tensor.name == "item_bias.weight") rows_from(model.item_row(0) + width, 1);
    if (tensor.name == "interaction.bias") copy(tensor, std::size_t{0}, model.mean());
  }
}

// The graph's parameters in their order. fill(spec, number, values) sets the values, which are 0 before.
std::vector<NamedTensor> tensors_of(const JobOptions& job, const auto& fill) {
  std::vector<NamedTensor> tensors;
  const std::vector<engine::Shape> shapes = job.graph->shapes(1);
  for (const dataflow::Graph::Node& node : job.graph->nodes()) {
    for (const dataflow::ParameterSpec& spec : dataflow::Graph::parameters(node, shapes)) {
      NamedTensor tensor{dataflow::parameter_name(node, spec), spec.shape, {}};
      tensor.values.resize(static_cast<std::size_t>(spec.shape.elements()));
      fill(spec, static_cast<std::uint32_t>(tensors.size()), std::span(tensor.values));
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

}  // namespace

std::vector<scheduler::Rating> load_rating_list(const JobOptions& job, const std::string& data_root,
                                                dataflow::Split split, std::vector<std::string>& warnings) {
  engine::host::Pool pool(engine::host::usable_cores());
  const auto data = load_dataset(job.data, data_root, split, pool, warnings);
  if (data->size() == 0) engine::fail(engine::ErrorKind::kData, "{}: there are no ratings", data->name());
  const dataflow::InputDescription& description = data->description();
  std::array<std::int32_t, 2> ids{};
  float value = 0.0F;
  const std::array features = {dataflow::InputTensor(description.tensors.front(), ids.data())};
  const dataflow::InputTensor label(description.tensors.back(), &value);
  std::vector<scheduler::Rating> ratings;
  engine::host::MemoryBudget().require(static_cast<std::size_t>(data->size()) * sizeof(scheduler::Rating), data->name(),
                                       "use fewer ratings, or more memory");
  ratings.reserve(static_cast<std::size_t>(data->size()));
  for (std::int64_t example = 0; example < data->size(); ++example) {
    data->read(example, {}, features);
    data->read_label(example, label);
    ratings.push_back({ids[0], ids[1], value});
  }
  return ratings;
}

std::vector<NamedTensor> initial_tensors(const JobOptions& job) {
  return tensors_of(job, [&](const dataflow::ParameterSpec& spec, std::uint32_t index, std::span<float> values) {
    dataflow::initialize(spec.initializer, spec.fan, job.training.seed, index, values);
  });
}

FactorizationModel to_model(const std::vector<NamedTensor>& tensors) {
  const NamedTensor& users = find(tensors, "user.weight");
  FactorizationModel model{users.shape[0], find(tensors, "item.weight").shape[0], users.shape[1], {}};
  model.weights.resize(model.size());
  for_each_weight(tensors, model, [&](const NamedTensor& tensor, std::size_t from, std::size_t to) {
    model.weights[to] = tensor.values[from];
  });
  return model;
}

std::vector<NamedTensor> to_tensors(const JobOptions& job, const FactorizationModel& model) {
  // The model has a value for every element.
  std::vector<NamedTensor> tensors =
      tensors_of(job, [](const dataflow::ParameterSpec&, std::uint32_t, std::span<float>) {});
  for_each_weight(tensors, model, [&](NamedTensor& tensor, std::size_t to, std::size_t from) {
    tensor.values[to] = model.weights[from];
  });
  return tensors;
}

}  // namespace arbalest::jobs
