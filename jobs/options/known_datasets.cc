#include "jobs/options/known_datasets.h"

#include "dataflow/input/digits.h"
#include "engine/error.h"

namespace arbalest::jobs {

KnownDataset known_dataset(v1::Data::SourceCase source) {
  using Kind = DataOptions::Kind;
  const dataflow::InputDescription gray28{{1, 28, 28}, 10};
  switch (source) {
    case v1::Data::kMnist:
      return {"mnist", Kind::kMnist, "mnist", gray28, {0.1307F, 0.3081F}, 60000, 10000};
    case v1::Data::kFashionMnist:
      return {"fashion_mnist", Kind::kMnist, "fashion-mnist", gray28, {0.2860F, 0.3530F}, 60000, 10000};
    case v1::Data::kDigits:
      return {"digits",
              Kind::kDigits,
              "",
              dataflow::digits_description(),
              dataflow::kDigitsNormalization,
              dataflow::kDigitsTrainingExamples,
              dataflow::kDigitsTestExamples};
    case v1::Data::SOURCE_NOT_SET:
      break;
  }
  engine::fail(engine::ErrorKind::kInternal, "no dataset is chosen");
}

}  // namespace arbalest::jobs
