#include "jobs/run/output_space.h"

#include <system_error>
#include <utility>

#include "engine/error.h"
#include "jobs/messages/text.h"

namespace arbalest::jobs {

std::int64_t model_bytes(const dataflow::Graph& graph) {
  const std::vector<engine::Shape> shapes = graph.shapes(1);
  std::int64_t elements = 0;
  for (const dataflow::Graph::Node& node : graph.nodes()) {
    for (const dataflow::ParameterSpec& parameter : dataflow::Graph::parameters(node, shapes)) {
      elements += parameter.shape.elements();
    }
  }
  return elements * static_cast<std::int64_t>(sizeof(float));
}

void check_output_space(const std::filesystem::path& directory, const dataflow::Graph& graph) {
  constexpr std::int64_t kReserve = std::int64_t{1} << 20U;  // metrics of a few thousand epochs
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (error || space.capacity == 0) return;
  const std::int64_t needed = model_bytes(graph) + kReserve;
  if (std::cmp_greater_equal(space.available, needed)) return;
  engine::fail(engine::ErrorKind::kOutOfMemory,
               "the disk of '{}' has {} free, but the run would write {}: {} of model, and {} are kept for metrics; "
               "free some, or choose another directory with --output",
               directory.string(), bytes_text(static_cast<std::int64_t>(space.available)), bytes_text(needed),
               bytes_text(needed - kReserve), bytes_text(kReserve));
}

}  // namespace arbalest::jobs
