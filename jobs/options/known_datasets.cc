#include "jobs/options/known_datasets.h"

#include "dataflow/input/cifar.h"
#include "dataflow/input/digits.h"
#include "engine/error.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* source_field(const v1::Data& data) {
  return data.GetReflection()->GetOneofFieldDescriptor(data, data.GetDescriptor()->FindOneofByName("source"));
}

const FieldDescriptor* directory_field(const v1::Data& data) {
  return source_field(data)->message_type()->FindFieldByName("directory");
}

KnownDataset known_dataset(const v1::Data& data) {
  using Kind = DataOptions::Kind;
  const dataflow::InputDescription gray28{{1, 28, 28}, 10};
  switch (data.source_case()) {
    case v1::Data::kMnist:
      return {"mnist", Kind::kIdx, "mnist", gray28, {{0.1307F}, {0.3081F}}, 60000, 10000};
    case v1::Data::kFashionMnist:
      return {"fashion_mnist", Kind::kIdx, "fashion-mnist", gray28, {{0.2860F}, {0.3530F}}, 60000, 10000};
    case v1::Data::kCifar10:
      return {"cifar10",
              Kind::kCifar10,
              "cifar-10",
              dataflow::cifar_description(dataflow::CifarVersion::k10),
              {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}},
              50000,
              10000};
    case v1::Data::kCifar100:
      return {"cifar100",
              Kind::kCifar100,
              "cifar-100",
              dataflow::cifar_description(dataflow::CifarVersion::k100),
              {{0.5071F, 0.4865F, 0.4409F}, {0.2673F, 0.2564F, 0.2762F}},
              50000,
              10000};
    case v1::Data::kImages:
      return {"images", Kind::kImages, "", {}, {{0.5F}, {0.25F}}, {}, {}};
    case v1::Data::kTfrecord:
      return {"tfrecord", Kind::kTfrecord, "", {}, {{0.5F}, {0.25F}}, {}, {}};
    case v1::Data::kNpy:
      if (data.npy().pixels() == v1::Npy::FLOAT32) return {"npy", Kind::kFloatNpy, "", {}, {}, {}, {}};
      return {"npy", Kind::kNpy, "", {}, {{0.5F}, {0.25F}}, {}, {}};
    case v1::Data::kRatings:
      return {"ratings", Kind::kRatings, "", {}, {}, {}, {}};
    case v1::Data::kDigits:
      return {"digits",
              Kind::kDigits,
              "",
              dataflow::digits_description(),
              dataflow::digits_normalization(),
              dataflow::kDigitsTrainingExamples,
              dataflow::kDigitsTestExamples};
    case v1::Data::SOURCE_NOT_SET:
      break;
  }
  engine::fail(engine::ErrorKind::kInternal, "no dataset is chosen");
}

}  // namespace arbalest::jobs
