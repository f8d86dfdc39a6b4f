#include "tests/support/zoo_table.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>

#include "arbalest/v1/zoo.pb.h"
#include "engine/base/error.h"
#include "tests/support/source_directory.h"

namespace arbalest::tests {

namespace {

using dataflow::image_input;

const std::map<std::string, dataflow::InputDescription>& data_sets() {
  static const std::map<std::string, dataflow::InputDescription> kDataSets{
      {"MNIST", image_input({1, 28, 28}, 10)},
      {"CIFAR-10", image_input({3, 32, 32}, 10)},
      {"ImageNet", image_input({3, 224, 224}, 1000)},
      {"ImageNet, 299x299", image_input({3, 299, 299}, 1000)},
  };
  return kDataSets;
}

ZooRow read_row(const std::string& line, const std::smatch& cells) {
  ZooRow row;
  row.name = cells[1];
  if (v1::Zoo::descriptor()->FindFieldByName(row.name) == nullptr)
    engine::fail(engine::ErrorKind::kInternal, "docs/models.md: no model of the zoo: {}", line);
  std::smatch found;
  const std::string side = cells[2];
  row.least_side = std::regex_search(side, found, std::regex(R"(^(\d+)x\1)")) ? std::stoll(found[1]) : 0;
  if (row.least_side == 0) return row;
  const std::string parameters = cells[3];
  if (!std::regex_search(parameters, found, std::regex(R"(\(([^)]+)\))")) || !data_sets().contains(found[1]))
    engine::fail(engine::ErrorKind::kInternal, "docs/models.md: no data set of these: {}", line);
  row.published_on = data_sets().at(found[1]);
  const std::regex number(R"(\d{1,3}(,\d{3})+)");
  for (std::sregex_iterator at(parameters.begin(), parameters.end(), number), end; at != end; ++at) {
    std::string digits = at->str();
    std::erase(digits, ',');
    row.parameters.insert(std::stoll(digits));
  }
  return row;
}

}  // namespace

std::vector<ZooRow> zoo_table() {
  std::ifstream file(source_directory() + "/docs/models.md");
  const std::regex form(R"(\| `(\w+)` \|[^|]*\| ([^|]*) \| ([^|]*) \|)");
  std::vector<ZooRow> rows;
  bool is_zoo = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) is_zoo = line == "## The zoo";
    std::smatch cells;
    if (is_zoo && std::regex_match(line, cells, form)) rows.push_back(read_row(line, cells));
  }
  std::ranges::stable_partition(rows, [](const ZooRow& row) { return row.least_side > 0; });
  return rows;
}

}  // namespace arbalest::tests
