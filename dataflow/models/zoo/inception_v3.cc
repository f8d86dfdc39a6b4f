// Inception-v3 (Szegedy et al., 2016); layers are named as in torchvision.
#include "dataflow/models/zoo/zoo_builder.h"

namespace arbalest::dataflow {

namespace {

constexpr float kEpsilon = 1e-3F;
constexpr float kAuxiliaryWeight = 0.4F;

struct Unit {
  std::string name;
  int filters;
  FilterOptions filter{.kernel = 1};
};

const FilterOptions kSame3{.kernel = 3, .padding = 1};
const FilterOptions kHalf3{.kernel = 3, .stride = 2};
const FilterOptions kRow3{.kernel = {1, 3}, .padding = {0, 1}};
const FilterOptions kColumn3{.kernel = {3, 1}, .padding = {1, 0}};
const FilterOptions kSame5{.kernel = 5, .padding = 2};
const FilterOptions kRow7{.kernel = {1, 7}, .padding = {0, 3}};
const FilterOptions kColumn7{.kernel = {7, 1}, .padding = {3, 0}};

// Convolution, normalization, ReLU.
void add_unit(ZooBuilder& model, const Unit& unit) {
  model.conv_bn(unit.name + ".conv", unit.name + ".bn", unit.filters, unit.filter).set_epsilon(kEpsilon);
  model.relu(unit.name + ".relu");
}

// Branches that read one input and are concatenated.
class Mixed {
 public:
  Mixed(ZooBuilder& model, std::string name) : model_(model), name_(std::move(name)), input_(model.last()) {}
  ~Mixed() = default;
  Mixed(const Mixed&) = delete;
  Mixed& operator=(const Mixed&) = delete;

  // Adds units to a branch that continues after them; returns the name of the last one.
  std::string chain(const std::string& from, const std::vector<Unit>& units) {
    model_.from(from);
    for (const Unit& unit : units) add_unit(model_, {name_ + "." + unit.name, unit.filters, unit.filter});
    return model_.last();
  }
  void branch(const std::vector<Unit>& units) { ends_.push_back(chain(input_, units)); }
  void branch_from(const std::string& from, const Unit& unit) { ends_.push_back(chain(from, {unit})); }
  // Zeros beyond the border count in the average.
  void pooled_branch(int filters) {
    model_.from(input_).average_pool(name_ + ".pool", {.kernel = 3, .padding = 1}).set_count_padding(true);
    ends_.push_back(chain(model_.last(), {{"branch_pool", filters}}));
  }
  void halving_pool() {
    model_.from(input_).max_pool(name_ + ".pool", kHalf3);
    ends_.push_back(model_.last());
  }
  const std::string& input() const { return input_; }
  void join() { model_.concat(name_, ends_); }

 private:
  ZooBuilder& model_;
  std::string name_;
  std::string input_;
  std::vector<std::string> ends_;
};

void mixed_a(ZooBuilder& model, const std::string& name, int pool_filters) {
  Mixed mixed(model, name);
  mixed.branch({{"branch1x1", 64}});
  mixed.branch({{"branch5x5_1", 48}, {"branch5x5_2", 64, kSame5}});
  mixed.branch({{"branch3x3dbl_1", 64}, {"branch3x3dbl_2", 96, kSame3}, {"branch3x3dbl_3", 96, kSame3}});
  mixed.pooled_branch(pool_filters);
  mixed.join();
}

void mixed_b(ZooBuilder& model, const std::string& name) {
  Mixed mixed(model, name);
  mixed.branch({{"branch3x3", 384, kHalf3}});
  mixed.branch({{"branch3x3dbl_1", 64}, {"branch3x3dbl_2", 96, kSame3}, {"branch3x3dbl_3", 96, kHalf3}});
  mixed.halving_pool();
  mixed.join();
}

void mixed_c(ZooBuilder& model, const std::string& name, int inner) {
  Mixed mixed(model, name);
  mixed.branch({{"branch1x1", 192}});
  mixed.branch({{"branch7x7_1", inner}, {"branch7x7_2", inner, kRow7}, {"branch7x7_3", 192, kColumn7}});
  mixed.branch({{"branch7x7dbl_1", inner},
                {"branch7x7dbl_2", inner, kColumn7},
                {"branch7x7dbl_3", inner, kRow7},
                {"branch7x7dbl_4", inner, kColumn7},
                {"branch7x7dbl_5", 192, kRow7}});
  mixed.pooled_branch(192);
  mixed.join();
}

void mixed_d(ZooBuilder& model, const std::string& name) {
  Mixed mixed(model, name);
  mixed.branch({{"branch3x3_1", 192}, {"branch3x3_2", 320, kHalf3}});
  mixed.branch({{"branch7x7x3_1", 192},
                {"branch7x7x3_2", 192, kRow7},
                {"branch7x7x3_3", 192, kColumn7},
                {"branch7x7x3_4", 192, kHalf3}});
  mixed.halving_pool();
  mixed.join();
}

void mixed_e(ZooBuilder& model, const std::string& name) {
  Mixed mixed(model, name);
  mixed.branch({{"branch1x1", 320}});
  const std::string once = mixed.chain(mixed.input(), {{"branch3x3_1", 384}});
  mixed.branch_from(once, {"branch3x3_2a", 384, kRow3});
  mixed.branch_from(once, {"branch3x3_2b", 384, kColumn3});
  const std::string twice = mixed.chain(mixed.input(), {{"branch3x3dbl_1", 448}, {"branch3x3dbl_2", 384, kSame3}});
  mixed.branch_from(twice, {"branch3x3dbl_3a", 384, kRow3});
  mixed.branch_from(twice, {"branch3x3dbl_3b", 384, kColumn3});
  mixed.pooled_branch(192);
  mixed.join();
}

void add_stem(ZooBuilder& model) {
  add_unit(model, {"Conv2d_1a_3x3", 32, kHalf3});
  add_unit(model, {"Conv2d_2a_3x3", 32, {.kernel = 3}});
  add_unit(model, {"Conv2d_2b_3x3", 64, kSame3});
  model.max_pool("maxpool1", kHalf3);
  add_unit(model, {"Conv2d_3b_1x1", 80});
  add_unit(model, {"Conv2d_4a_3x3", 192, {.kernel = 3}});
  model.max_pool("maxpool2", kHalf3);
}

void add_auxiliary_head(ZooBuilder& model) {
  const std::string input = model.last();
  model.average_pool("AuxLogits.pool", {.kernel = 5, .stride = 3});
  add_unit(model, {"AuxLogits.conv0", 128});
  add_unit(model, {"AuxLogits.conv1", 768, {.kernel = 5}});
  model.global_average_pool("AuxLogits.avgpool");
  model.auxiliary_classify("AuxLogits.fc", "AuxLogits.loss", kAuxiliaryWeight);
  model.from(input);
}

}  // namespace

void inception_v3(const v1::InceptionV3& options, ZooBuilder& model) {
  model.require_sides(options.auxiliary_head() ? 299 : 75);
  add_stem(model);
  mixed_a(model, "Mixed_5b", 32);
  mixed_a(model, "Mixed_5c", 64);
  mixed_a(model, "Mixed_5d", 64);
  mixed_b(model, "Mixed_6a");
  mixed_c(model, "Mixed_6b", 128);
  mixed_c(model, "Mixed_6c", 160);
  mixed_c(model, "Mixed_6d", 160);
  mixed_c(model, "Mixed_6e", 192);
  if (options.auxiliary_head()) add_auxiliary_head(model);
  mixed_d(model, "Mixed_7a");
  mixed_e(model, "Mixed_7b");
  mixed_e(model, "Mixed_7c");
  model.global_average_pool("avgpool");
  model.dropout("dropout", options.dropout());
  model.classify("fc");
}

}  // namespace arbalest::dataflow
