#include "options/text/field_suggestion.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "engine/base/nearest_name.h"

namespace arbalest::jobs {

namespace {

// A word of PyTorch, Keras or Caffe and what a job calls it.
struct Synonym {
  std::string_view word;
  std::string_view ours;
};

// Ours: a path in a job.
constexpr std::array kPlaces{
    Synonym{"epochs", "training.max_epochs"},
    Synonym{"num_epochs", "training.max_epochs"},
    Synonym{"n_epochs", "training.max_epochs"},
    Synonym{"batch", "training.batch_size"},
    Synonym{"train_batch_size", "training.batch_size"},
    Synonym{"dtype", "training.precision"},
    Synonym{"amp", "training.precision"},
    Synonym{"random_seed", "training.seed"},
    Synonym{"lr", "learning_rate.base"},
    Synonym{"learning_rate", "learning_rate.base"},
    Synonym{"base_lr", "learning_rate.base"},
    Synonym{"warmup", "learning_rate.warm_up"},
    Synonym{"momentum", "optimizer.<kind>.momentum"},
    Synonym{"weight_decay", "optimizer.<kind>.weight_decay"},
    Synonym{"max_norm", "optimizer.clip_gradient_norm"},
    Synonym{"clip_grad_norm", "optimizer.clip_gradient_norm"},
    Synonym{"clipnorm", "optimizer.clip_gradient_norm"},
    Synonym{"num_learners", "learners.per_device.fixed"},
    Synonym{"gpus", "devices"},
    Synonym{"scheduler", "learning_rate"},
    Synonym{"lr_scheduler", "learning_rate"},
    Synonym{"lr_policy", "learning_rate"},
};

// Ours: a name that several messages may have.
constexpr std::array kNames{
    Synonym{"eps", "epsilon"},
    Synonym{"lr", "rate"},
    Synonym{"outer_lr", "rate"},
    Synonym{"k", "period"},
    Synonym{"tau", "period"},
    Synonym{"inner_steps", "period"},
    Synonym{"split", "fraction"},
    Synonym{"validation_split", "validation"},
    Synonym{"val", "validation"},
    Synonym{"valid", "validation"},
    Synonym{"milestones", "drop"},
    Synonym{"kernel_size", "kernel"},
    Synonym{"pool_size", "kernel"},
    Synonym{"strides", "stride"},
    Synonym{"pad", "padding"},
    Synonym{"out_channels", "filters"},
    Synonym{"num_output", "filters"},
    Synonym{"num_output", "units"},
    Synonym{"out_features", "units"},
    Synonym{"num_embeddings", "rows"},
    Synonym{"embedding_dim", "width"},
    Synonym{"negative_slope", "slope"},
    Synonym{"dropout_ratio", "ratio"},
    Synonym{"rate", "ratio"},
    Synonym{"p", "ratio"},
    Synonym{"conv2d", "conv"},
    Synonym{"convolution", "conv"},
    Synonym{"linear", "dense"},
    Synonym{"fc", "dense"},
    Synonym{"fully_connected", "dense"},
    Synonym{"bn", "batch_norm"},
    Synonym{"batchnorm2d", "batch_norm"},
    Synonym{"batch_normalization", "batch_norm"},
    Synonym{"lrn", "local_response_norm"},
    Synonym{"max_pooling2d", "max_pool"},
    Synonym{"avg_pool", "average_pool"},
    Synonym{"average_pooling2d", "average_pool"},
    Synonym{"cross_entropy", "softmax_cross_entropy"},
    Synonym{"mse_loss", "squared_error"},
    Synonym{"swish", "silu"},
    Synonym{"concatenate", "concat"},
    Synonym{"adam", "adamw"},
    Synonym{"ddp", "s_sgd"},
    Synonym{"allreduce", "s_sgd"},
    Synonym{"easgd", "ea_sgd"},
    Synonym{"downpour", "async_sgd"},
    Synonym{"parameter_server", "async_sgd"},
    Synonym{"post_local_sgd", "local_sgd"},
};

// Functions that the field knows and that we do not have: their spelling is near that of others.
constexpr std::array<std::string_view, 9> kOthers{"elu",  "selu",  "celu",  "rrelu", "mish",
                                                  "lars", "nadam", "radam", "rprop"};

std::string_view last_part(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

// Whether `whole` ends with the words of `part`: "at_epoch" with "epoch".
bool ends_with_words(std::string_view whole, std::string_view part) {
  return whole.size() > part.size() && whole.ends_with(part) && whole[whole.size() - part.size() - 1] == '_';
}

// "s-sgd" and "S_SGD" as a field's name: "s_sgd".
std::string as_field_name(std::string_view word) {
  std::string name(word);
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

std::string suggested_name(std::string_view word, std::span<const std::string> names) {
  const std::string name = as_field_name(word);
  const bool is_ours = std::ranges::find(names, name) != names.end();
  if (!is_ours && std::ranges::find(kOthers, name) != kOthers.end()) return "";
  for (const std::span<const Synonym> synonyms :
       {std::span<const Synonym>(kPlaces), std::span<const Synonym>(kNames)}) {
    for (const Synonym& synonym : synonyms) {
      if (synonym.word != name) continue;
      const auto found = std::ranges::find(names, last_part(synonym.ours));
      if (found != names.end()) return *found;
    }
  }
  const auto shares_end = [&](const std::string& each) {
    return each == name || ends_with_words(each, name) || ends_with_words(name, each);
  };
  const std::string nearest = engine::nearest_name(name, names);
  if (std::ranges::count_if(names, shares_end) != 1) return nearest;
  const std::string& shared = *std::ranges::find_if(names, shares_end);
  // "pacience_epochs" is patience_epochs rather than epochs.
  return shared.size() < name.size() && !nearest.empty() ? nearest : shared;
}

std::string known_place(std::string_view word) {
  const auto found = std::ranges::find(kPlaces, as_field_name(word), &Synonym::word);
  return found == kPlaces.end() ? "" : std::string(found->ours);
}

std::string suggestion(std::string_view word, std::span<const std::string> names) {
  const std::string name = suggested_name(word, names);
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

}  // namespace arbalest::jobs
