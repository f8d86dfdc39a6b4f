#include "dataflow/models/zoo/zoo.h"

#include "dataflow/models/fields/field_ranges.h"
#include "dataflow/models/zoo/alexnet.h"
#include "dataflow/models/zoo/cifar_quick.h"
#include "dataflow/models/zoo/inception_v3.h"
#include "dataflow/models/zoo/lenet.h"
#include "dataflow/models/zoo/logistic_regression.h"
#include "dataflow/models/zoo/matrix_factorization.h"
#include "dataflow/models/zoo/mlp.h"
#include "dataflow/models/zoo/mobilenet_v1.h"
#include "dataflow/models/zoo/mobilenet_v2.h"
#include "dataflow/models/zoo/resnet.h"
#include "dataflow/models/zoo/resnet_cifar.h"
#include "dataflow/models/zoo/vgg.h"

namespace arbalest::dataflow {

namespace {

// The model's name in a job file: "lenet".
std::string name_of(const v1::Zoo& zoo) {
  return zoo.GetReflection()->GetOneofFieldDescriptor(zoo, zoo.GetDescriptor()->oneof_decl(0))->name();
}

void build(const v1::Zoo& zoo, ZooBuilder& builder) {
  switch (zoo.model_case()) {
    case v1::Zoo::kLogisticRegression: return logistic_regression(builder);
    case v1::Zoo::kMlp: return mlp(zoo.mlp(), builder);
    case v1::Zoo::kLenet: return lenet(zoo.lenet(), builder);
    case v1::Zoo::kCifarQuick: return cifar_quick(builder);
    case v1::Zoo::kAlexnet: return alexnet(zoo.alexnet(), builder);
    case v1::Zoo::kVgg: return vgg(zoo.vgg(), builder);
    case v1::Zoo::kResnetCifar: return resnet_cifar(zoo.resnet_cifar(), builder);
    case v1::Zoo::kResnet: return resnet(zoo.resnet(), builder);
    case v1::Zoo::kInceptionV3: return inception_v3(zoo.inception_v3(), builder);
    case v1::Zoo::kMobilenetV1: return mobilenet_v1(builder);
    case v1::Zoo::kMobilenetV2: return mobilenet_v2(zoo.mobilenet_v2(), builder);
    case v1::Zoo::kMatrixFactorization: return matrix_factorization(zoo.matrix_factorization(), builder);
    case v1::Zoo::MODEL_NOT_SET: break;
  }
  engine::fail(engine::ErrorKind::kInternal, "this model of the zoo has no builder");
}

}  // namespace

LayerMessages expand(const v1::Zoo& zoo, const InputDescription& input, FieldIssues& issues) {
  if (zoo.model_case() == v1::Zoo::MODEL_NOT_SET) {
    issues.add("zoo", "zoo names no model; choose one, such as lenet {} or resnet { depth: 50 }");
    return {};
  }
  if (input.has_ids() && !zoo.has_matrix_factorization()) {
    issues.add(
        "zoo." + name_of(zoo),
        fmt::format("{} classifies images, and the data has ratings; choose matrix_factorization {{}}", name_of(zoo)));
    return {};
  }
  ZooBuilder builder("zoo." + name_of(zoo), input, issues);
  check_fields(zoo, "zoo", issues);
  build(zoo, builder);
  LayerMessages layers = builder.take_layers();
  if (!input.is_known()) layers.Clear();
  return layers;
}

}  // namespace arbalest::dataflow
