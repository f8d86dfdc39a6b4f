// Trains every model of the zoo for one step and compares it with PyTorch in float64.
#include <algorithm>
#include <filesystem>
#include <set>

#include "arbalest/v1/zoo.pb.h"
#include "tests/support/catch.h"
#include "tests/support/golden_model.h"
#include "tests/support/source_directory.h"

namespace arbalest::tests {

namespace {

// The names of the golden files.
std::set<std::string> golden_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() + "/tests/goldens")) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".json" && name != "validation_splits") names.insert(name);
  }
  return names;
}

}  // namespace

// Two cases, so that they run side by side.
TEST_CASE("golden: one step of a residual network is PyTorch's", "[golden]") {
  for (const std::string& name : golden_names()) {
    if (name.starts_with("resnet")) check_golden(name);
  }
}

TEST_CASE("golden: one step of any other model is PyTorch's", "[golden]") {
  for (const std::string& name : golden_names()) {
    if (!name.starts_with("resnet")) check_golden(name);
  }
}

TEST_CASE("golden: every model of the zoo has a golden file") {
  const std::set<std::string> names = golden_names();
  const auto& all = *v1::Zoo::descriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    const std::string& model = all.field(i)->name();
    CAPTURE(model);
    CHECK(std::ranges::any_of(names,
                              [&](const std::string& name) { return golden_model(name).starts_with(model + " {"); }));
  }
}

}  // namespace arbalest::tests
