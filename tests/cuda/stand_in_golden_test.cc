// Models of the zoo on the stand-in, compared with PyTorch in float64. This test does not run on a real GPU, because
// the goldens are not copied to its machine.
#include "tests/support/catch.h"
#include "tests/support/golden_model.h"

namespace arbalest::tests {

TEST_CASE("golden: small models on the stand-in", "[training]") {
  for (const char* name : {"mlp", "lenet", "lenet_bn", "cifar_quick", "resnet_cifar20", "matrix_factorization"})
    check_golden(name, "cuda:0");
}

}  // namespace arbalest::tests
