#include "dataflow/models/zoo/zoo.h"

#include "dataflow/models/fields/field_ranges.h"

namespace arbalest::dataflow {

// The models. Each is defined in the file of its name.
void logistic_regression(ZooBuilder& model);
void mlp(const v1::Mlp& options, ZooBuilder& model);
void lenet(const v1::Lenet& options, ZooBuilder& model);
void cifar_quick(ZooBuilder& model);
void alexnet(const v1::Alexnet& options, ZooBuilder& model);
void vgg(const v1::Vgg& options, ZooBuilder& model);
void resnet_cifar(const v1::ResnetCifar& options, ZooBuilder& model);
void resnet(const v1::Resnet& options, ZooBuilder& model);
void inception_v3(const v1::InceptionV3& options, ZooBuilder& model);
void mobilenet_v1(ZooBuilder& model);
void mobilenet_v2(const v1::MobilenetV2& options, ZooBuilder& model);
void squeezenet(const v1::Squeezenet& options, ZooBuilder& model);
void matrix_factorization(const v1::MatrixFactorization& options, ZooBuilder& model);

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
    case v1::Zoo::kSqueezenet: return squeezenet(zoo.squeezenet(), builder);
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
