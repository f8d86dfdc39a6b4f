#include "predict/described_model.h"

#include <utility>

#include "options/sparse/graph_needed.h"
#include "train/weights/saved_description.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

DescribedModel read_described_model(JobOptions job, const std::string& path, const std::string& sha256) {
  require_graph(job, "arbalest predict");
  std::vector<dataflow::NamedTensor> tensors = read_finite_model(path, sha256);
  SavedDescription saved = read_saved_description(job, path);
  if (saved.description.reads_image_files()) {
    std::string note = old_rules_note(saved.description.pixels, fmt::format("'{}'", path));
    if (!note.empty()) saved.warnings.push_back(std::move(note));
  }
  return {std::move(job), std::move(saved.description), std::move(tensors), std::move(saved.warnings)};
}

}  // namespace arbalest::jobs
