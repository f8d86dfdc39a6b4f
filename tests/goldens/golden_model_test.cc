// Trains every model of the zoo for one step and compares it with PyTorch in float64.
#include <filesystem>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/golden_model.h"
#include "tests/support/source_directory.h"

namespace arbalest::tests {

namespace {

using Names = std::vector<std::string>;

const Names kSmall{"logistic_regression", "mlp", "lenet", "lenet_bn", "cifar_quick", "matrix_factorization"};
const Names kAlexnet{"alexnet", "alexnet_grouped"};
const Names kVgg{"vgg11", "vgg16_bn", "vgg16_imagenet", "vgg19_imagenet"};
const Names kResnetCifar{"resnet_cifar20", "resnet_cifar32", "resnet_cifar44", "resnet_cifar56", "resnet_cifar110"};
const Names kResnet{"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"};
const Names kOtherResnets{"resnet50_v1", "resnet18_v2", "resnet50_v2"};
const Names kInception{"inception_v3", "inception_v3_plain"};
const Names kMobilenet{"mobilenet_v1", "mobilenet_v2"};

void check_goldens(const Names& names) {
  for (const std::string& name : names) check_golden(name);
}

}  // namespace

TEST_CASE("golden: small models", "[golden]") { check_goldens(kSmall); }
TEST_CASE("golden: AlexNet", "[golden]") { check_goldens(kAlexnet); }
TEST_CASE("golden: VGG", "[golden]") { check_goldens(kVgg); }
TEST_CASE("golden: ResNet for CIFAR", "[golden]") { check_goldens(kResnetCifar); }
TEST_CASE("golden: ResNet", "[golden]") { check_goldens(kResnet); }
TEST_CASE("golden: other versions of ResNet", "[golden]") { check_goldens(kOtherResnets); }
TEST_CASE("golden: Inception-v3", "[golden]") { check_goldens(kInception); }
TEST_CASE("golden: MobileNets", "[golden]") { check_goldens(kMobilenet); }

TEST_CASE("golden: every golden file is tested") {
  std::set<std::string> compared;
  for (const Names& names : {kSmall, kAlexnet, kVgg, kResnetCifar, kResnet, kOtherResnets, kInception, kMobilenet}) {
    compared.insert(names.begin(), names.end());
  }
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() + "/tests/goldens")) {
    if (entry.path().extension() == ".json" && entry.path().stem() != "validation_splits")
      files.insert(entry.path().stem().string());
  }
  CHECK(compared == files);
}

}  // namespace arbalest::tests
