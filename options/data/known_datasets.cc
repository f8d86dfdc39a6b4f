#include "options/data/known_datasets.h"

#include "dataflow/input/digits/digits.h"
#include "dataflow/input/formats/cifar.h"
#include "engine/base/error.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;

namespace {

// Number of examples of the digits 0 to 9 in MNIST's training set.
std::vector<std::int64_t> mnist_classes() { return {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}; }

std::vector<std::int64_t> equal_classes(std::int64_t classes, std::int64_t examples) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(classes), examples / classes);
}

std::vector<std::string> digit_names() { return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}; }

// https://github.com/zalandoresearch/fashion-mnist numbers the articles so.
std::vector<std::string> fashion_names() {
  return {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
}

}  // namespace

const FieldDescriptor* source_field(const v1::Data& data) {
  return data.GetReflection()->GetOneofFieldDescriptor(data, data.GetDescriptor()->FindOneofByName("source"));
}

const FieldDescriptor* directory_field(const v1::Data& data) {
  return source_field(data)->message_type()->FindFieldByName("directory");
}

KnownDataset known_dataset(const v1::Data& data) {
  using Kind = DataOptions::Kind;
  const dataflow::InputDescription gray28 = dataflow::image_input({1, 28, 28}, 10);
  switch (data.source_case()) {
    case v1::Data::kMnist:
      return {"mnist", Kind::kIdx, gray28, {{0.1307F}, {0.3081F}}, mnist_classes(), 10000, digit_names()};
    case v1::Data::kFashionMnist:
      return {"fashion_mnist",          Kind::kIdx, gray28,         {{0.2860F}, {0.3530F}},
              equal_classes(10, 60000), 10000,      fashion_names()};
    case v1::Data::kCifar10:
      return {"cifar10",
              Kind::kCifar10,
              dataflow::cifar_description(dataflow::CifarVersion::k10),
              {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}},
              equal_classes(10, 50000),
              10000};
    case v1::Data::kCifar100:
      return {"cifar100",
              Kind::kCifar100,
              dataflow::cifar_description(dataflow::CifarVersion::k100),
              {{0.5071F, 0.4865F, 0.4409F}, {0.2673F, 0.2564F, 0.2762F}},
              equal_classes(100, 50000),
              10000};
    case v1::Data::kImages: return {"images", Kind::kImages, {}, {{0.5F}, {0.25F}}, {}, {}};
    case v1::Data::kTfrecord: return {"tfrecord", Kind::kTfrecord, {}, {{0.5F}, {0.25F}}, {}, {}};
    case v1::Data::kNpy:
      if (data.npy().pixels() == v1::Npy::FLOAT32) return {"npy", Kind::kNumbers, {}, {}, {}, {}};
      return {"npy", Kind::kNpy, {}, {{0.5F}, {0.25F}}, {}, {}};
    case v1::Data::kCsv: return {"csv", Kind::kNumbers, {}, {}, {}, {}};
    case v1::Data::kRatings: return {"ratings", Kind::kRatings, {}, {}, {}, {}};
    case v1::Data::kLibsvm: return {"libsvm", Kind::kLibsvm, {}, {}, {}, {}};
    case v1::Data::kDigits:
      return {"digits",
              Kind::kDigits,
              dataflow::digits_description(),
              dataflow::digits_normalization(),
              equal_classes(10, dataflow::kDigitsTrainingExamples),
              dataflow::kDigitsTestExamples,
              digit_names()};
    case v1::Data::SOURCE_NOT_SET: break;
  }
  engine::fail(engine::ErrorKind::kInternal, "no dataset is chosen");
}

}  // namespace arbalest::jobs
