#include "report/inspection/inspection_report.h"

#include <fmt/format.h>

#include "messages/text.h"

namespace arbalest::jobs {

namespace {

constexpr std::size_t kMostClasses = 20;

// "host memory, with 4 learners"
std::string with_learners(const MemoryUse& use) {
  return use.learners == 0 ? use.name : fmt::format("{}, with {}", use.name, counted(use.learners, "learner"));
}

// "10, in teams of 2"
std::string fitting_learners(const Inspection& inspection) {
  const std::string most = grouped(inspection.learners_that_fit);
  if (inspection.is_split) return most + " (of a split model a device has one)";
  if (inspection.team == 1 || inspection.teams_vary) return most;
  return inspection.team_that_fits == 1 ? most + ", without teams"
                                        : fmt::format("{}, in teams of {}", most, inspection.team_that_fits);
}

// "conv3_1", "conv3_1 and 12 other layers"
std::string first_of(const std::vector<std::string>& layers) {
  if (layers.size() == 1) return layers.front();
  return fmt::format("{} and {}", layers.front(), counted(std::ssize(layers) - 1, "other layer"));
}

nlohmann::ordered_json to_json(const std::vector<KernelRow>& rows) {
  auto kernels = nlohmann::ordered_json::array();
  for (const KernelRow& row : rows) {
    auto candidates = nlohmann::ordered_json::array();
    for (const engine::KernelCandidate& each : row.choice.candidates) {
      candidates.push_back(
          {{"name", each.name},
           {"microseconds", each.microseconds ? nlohmann::ordered_json(*each.microseconds) : nullptr}});
    }
    kernels.push_back({{"device", row.device},
                       {"question", row.choice.question},
                       {"answer", row.choice.answer},
                       {"candidates", candidates},
                       {"note", row.choice.note}});
  }
  return kernels;
}

nlohmann::ordered_json to_json(const ClassTable& table) {
  auto classes = nlohmann::ordered_json::array();
  for (std::size_t c = 0; c < table.size(); ++c) {
    const bool has_folder = table.are_folders && !table.in_files.empty();
    classes.push_back({{"class", c},
                       {"folder", has_folder ? nlohmann::ordered_json(table.in_files[c]) : nlohmann::ordered_json()},
                       {"name", table.names[c]}});
  }
  return classes;
}

}  // namespace

std::string to_text(const Inspection& inspection) {
  std::vector<std::vector<std::string>> layers = {
      {"layer", "kind", "output", "parameters", "forward FLOPs", "output bytes"}};
  for (const LayerRow& layer : inspection.layers) {
    layers.push_back({layer.name, layer.kind, layer.output, grouped(layer.parameters), grouped(layer.forward_flops),
                      grouped(layer.output_bytes)});
  }
  std::vector<std::vector<std::string>> totals = {
      {"parameters", grouped(inspection.parameters)},
      {"FLOPs, forward", grouped(inspection.forward_flops)},
      {"FLOPs, training", grouped(inspection.training_flops)},
      {"weights", bytes_text(inspection.weight_bytes)},
      {"arena", bytes_text(inspection.arena_bytes)},
      {"tensors without reuse", bytes_text(inspection.arena_bytes_without_reuse)},
      {"one learner", bytes_text(inspection.learner_bytes)},
      {"datasets", bytes_text(inspection.dataset_bytes)},
      {"device, without learners", bytes_text(inspection.device_bytes)}};
  if (inspection.team > 1) {
    totals.push_back({"learners of a team",
                      inspection.teams_vary ? fmt::format("up to {}", inspection.team) : grouped(inspection.team)});
  }
  if (!inspection.layers_in_turn.empty()) {
    totals.push_back({"no teams: a library computes", first_of(inspection.layers_in_turn)});
  }
  for (std::size_t m = 0; m < inspection.memory.size(); ++m) {
    const MemoryUse& use = inspection.memory[m];
    totals.push_back({with_learners(use), bytes_text(use.needed)});
    if (inspection.most_learners_per_device != inspection.learners_per_device) {
      const MemoryUse& most = inspection.most_memory[m];
      totals.push_back({with_learners(most) + ", the most in this run", bytes_text(most.needed)});
    }
    totals.push_back({fmt::format("{}, available", use.name), bytes_text(use.available)});
  }
  totals.push_back({"learners that fit on each device", fitting_learners(inspection)});
  std::vector<std::vector<std::string>> plan = {{"epochs done", "learning rate", "learners", "synchronization"}};
  std::vector<std::string> shown;
  for (const PlanRow& row : inspection.plan) {
    std::vector<std::string> now = {fmt::format("{:.4g}", row.learning_rate), grouped(row.learners),
                                    row.synchronization};
    if (now == shown) continue;  // only rows in which something changes
    plan.push_back({fmt::format("{:.4g}", row.epoch), now[0], now[1], now[2]});
    shown = std::move(now);
  }
  std::string kernels;
  const char* title = inspection.kernels_are_timed ? "\nKernels, timed:\n" : "\nKernels, without --timings:\n";
  for (const KernelRow& row : inspection.kernels) {
    kernels += fmt::format("{}{}: {}\n", kernels.empty() ? title : "", row.device, engine::to_text(row.choice));
  }
  std::string classes = to_text(inspection.classes, kMostClasses);
  if (!classes.empty()) classes = "\nClasses:\n" + classes;
  const std::string note = inspection.schedule_note.empty() ? "" : fmt::format(" ({})", inspection.schedule_note);
  return fmt::format("{}\nOne mini-batch of {}, {}:\n{}\nThe {} learning rate of each learner{}:\n{}{}{}",
                     table(layers, 3), inspection.batch_size, to_string(inspection.precision), table(totals, 1),
                     inspection.schedule, note, table(plan, 0), kernels, classes);
}

nlohmann::ordered_json to_json(const Inspection& inspection) {
  auto layers = nlohmann::ordered_json::array();
  for (const LayerRow& layer : inspection.layers) {
    layers.push_back({{"name", layer.name},
                      {"kind", layer.kind},
                      {"output", layer.output},
                      {"parameters", layer.parameters},
                      {"forward_flops", layer.forward_flops},
                      {"output_bytes", layer.output_bytes}});
  }
  auto memory = nlohmann::ordered_json::array();
  for (std::size_t m = 0; m < inspection.memory.size(); ++m) {
    const MemoryUse& use = inspection.memory[m];
    memory.push_back({{"name", use.name},
                      {"needed_bytes", use.needed},
                      {"most_needed_bytes", inspection.most_memory[m].needed},
                      {"available_bytes", use.available}});
  }
  auto plan = nlohmann::ordered_json::array();
  for (const PlanRow& row : inspection.plan) {
    plan.push_back({{"epoch", row.epoch},
                    {"rate", row.learning_rate},
                    {"learners", row.learners},
                    {"synchronization", row.synchronization}});
  }
  return {{"layers", layers},
          {"batch_size", inspection.batch_size},
          {"precision", to_string(inspection.precision)},
          {"parameters", inspection.parameters},
          {"forward_flops", inspection.forward_flops},
          {"training_flops", inspection.training_flops},
          {"weight_bytes", inspection.weight_bytes},
          {"arena_bytes", inspection.arena_bytes},
          {"arena_bytes_without_reuse", inspection.arena_bytes_without_reuse},
          {"learner_bytes", inspection.learner_bytes},
          {"dataset_bytes", inspection.dataset_bytes},
          {"device_bytes", inspection.device_bytes},
          {"available_bytes", inspection.available_bytes},
          {"learners_that_fit", inspection.learners_that_fit},
          {"team", inspection.team},
          {"team_that_fits", inspection.team_that_fits},
          {"layers_in_turn", inspection.layers_in_turn},
          {"is_split", inspection.is_split},
          {"learners_per_device", inspection.learners_per_device},
          {"most_learners_per_device", inspection.most_learners_per_device},
          {"memory", memory},
          {"schedule", inspection.schedule},
          {"schedule_note", inspection.schedule_note},
          {"plan", plan},
          {"kernels", to_json(inspection.kernels)},
          {"classes", to_json(inspection.classes)},
          {"warnings", inspection.warnings}};
}

}  // namespace arbalest::jobs
