#include "interchange/import/notes/export_signature.h"

#include <algorithm>
#include <sstream>
#include <string_view>

namespace arbalest::jobs {

namespace {

// The name between the quotes in "p_fc_bias: PARAMETER target='fc.bias'"; "" if the line is of another kind.
std::string target_in(const std::string& line, std::string_view kind) {
  const std::size_t at = line.find(kind);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kind.size();
  const std::size_t end = line.find('\'', begin);
  return end == std::string::npos ? "" : line.substr(begin, end - begin);
}

}  // namespace

std::string value_of(const google::protobuf::RepeatedPtrField<onnx::Entry>& entries, const std::string& key) {
  const auto found = std::ranges::find(entries, key, &onnx::Entry::key);
  return found == entries.end() ? "" : found->value();
}

ExportSignature read_signature(const onnx::Graph& graph) {
  std::istringstream lines(value_of(graph.metadata_props(), "pkg.torch.export.ExportedProgram.graph_signature"));
  ExportSignature signature;
  for (std::string line; std::getline(lines, line);) {
    if (std::string name = target_in(line, ": PARAMETER target='"); !name.empty()) signature.parameters.insert(name);
    if (std::string name = target_in(line, ": BUFFER target='"); !name.empty()) signature.buffers.insert(name);
  }
  return signature;
}

}  // namespace arbalest::jobs
