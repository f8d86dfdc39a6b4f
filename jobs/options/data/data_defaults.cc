#include "jobs/options/data/data_defaults.h"

#include <filesystem>
#include <vector>

#include "jobs/options/data/known_datasets.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

// Defaults of random resized crops, as usual since Szegedy et al. (2015).
constexpr double kMinArea = 0.08;
constexpr double kMaxAspect = 1.3333;

constexpr double kMaxSkipped = 0.01;

using Floats = google::protobuf::RepeatedField<float>;

void fill_list(const std::vector<float>& defaults, Floats& values) {
  if (values.empty()) values.Assign(defaults.begin(), defaults.end());
}

void fill_decoding(v1::Decoding& decoding) {
  if (!decoding.has_channels()) decoding.set_channels(3);
  if (!decoding.has_reduced()) decoding.set_reduced(false);
  if (!decoding.has_on_unreadable()) decoding.set_on_unreadable(v1::Decoding::STOP);
  if (decoding.on_unreadable() == v1::Decoding::SKIP && !decoding.has_max_skipped()) {
    decoding.set_max_skipped(kMaxSkipped);
  }
}

void fill_images(v1::Images& images) {
  if (!images.has_train()) images.set_train("train");
  if (!images.has_test()) images.set_test("test");
  if (!images.has_orientation()) images.set_orientation(v1::Images::APPLY);
  fill_decoding(*images.mutable_decoding());
}

void fill_tfrecord(v1::Tfrecord& records) {
  if (!records.has_train()) records.set_train("train-*");
  if (!records.has_test()) records.set_test("test-*");
  if (!records.has_first_label()) records.set_first_label(0);
  if (!records.has_orientation()) records.set_orientation(v1::Images::APPLY);
  fill_decoding(*records.mutable_decoding());
}

void fill_npy(v1::Npy& npy) {
  if (!npy.has_train_images()) npy.set_train_images("train_images.npy");
  if (!npy.has_train_labels()) npy.set_train_labels("train_labels.npy");
  if (!npy.has_test_images()) npy.set_test_images("test_images.npy");
  if (!npy.has_test_labels()) npy.set_test_labels("test_labels.npy");
  if (!npy.has_channels() && !npy.has_features()) npy.set_channels(3);
  if (!npy.has_pixels()) npy.set_pixels(v1::Npy::UINT8);
}

void fill_ratings(v1::Ratings& ratings) {
  if (!ratings.has_train_ids()) ratings.set_train_ids("train_ids.npy");
  if (!ratings.has_train_targets()) ratings.set_train_targets("train_targets.npy");
  if (!ratings.has_test_ids()) ratings.set_test_ids("test_ids.npy");
  if (!ratings.has_test_targets()) ratings.set_test_targets("test_targets.npy");
}

void fill_libsvm(v1::Libsvm& libsvm) {
  if (!libsvm.has_train()) libsvm.set_train("train.libsvm");
  if (!libsvm.has_test()) libsvm.set_test("test.libsvm");
}

void fill_directory(v1::Data& data, const std::string& default_directory) {
  const FieldDescriptor* field = directory_field(data);
  if (field == nullptr || default_directory.empty()) return;
  Message& source = *data.GetReflection()->MutableMessage(&data, source_field(data));
  const google::protobuf::Reflection& reflection = *source.GetReflection();
  if (!reflection.HasField(source, field)) reflection.SetString(&source, field, default_directory);
}

}  // namespace

void make_directory_absolute(v1::Data& data, const std::string& file) {
  const FieldDescriptor* field = directory_field(data);
  if (field == nullptr) return;
  Message& source = *data.GetReflection()->MutableMessage(&data, source_field(data));
  const google::protobuf::Reflection& reflection = *source.GetReflection();
  const std::string directory = reflection.GetString(source, field);
  if (!directory.starts_with("./") && !directory.starts_with("../")) return;
  const std::filesystem::path beside_job = std::filesystem::absolute(file).parent_path() / directory;
  reflection.SetString(&source, field, beside_job.lexically_normal().string());
}

void fill_defaults(v1::Data& data, const std::string& file) {
  if (data.source_case() == v1::Data::SOURCE_NOT_SET) return;
  const KnownDataset known = known_dataset(data);
  fill_directory(data, known.directory);
  make_directory_absolute(data, file);
  if (data.has_libsvm()) {
    fill_libsvm(*data.mutable_libsvm());
    return;  // the other defaults are for dense examples
  }
  if (data.has_validation() && !data.validation().has_seed()) {
    data.mutable_validation()->set_seed(dataflow::ValidationRule().seed);
  }
  if (data.class_names().empty())
    data.mutable_class_names()->Assign(known.class_names.begin(), known.class_names.end());
  if (data.has_images()) fill_images(*data.mutable_images());
  if (data.has_tfrecord()) fill_tfrecord(*data.mutable_tfrecord());
  if (data.has_npy()) fill_npy(*data.mutable_npy());
  if (data.has_ratings()) {
    fill_ratings(*data.mutable_ratings());
    return;  // the other defaults are for images
  }
  const engine::Augmentation none;
  v1::Augmentation& augmentation = *data.mutable_augmentation();
  if (!augmentation.has_padding()) augmentation.set_padding(none.padding);
  if (!augmentation.has_horizontal_flip()) augmentation.set_horizontal_flip(none.horizontal_flip);
  if (!augmentation.has_cutout()) augmentation.set_cutout(none.cutout);
  if (augmentation.has_random_resized_crop()) {
    v1::RandomResizedCrop& crop = *augmentation.mutable_random_resized_crop();
    if (!crop.has_min_area()) crop.set_min_area(kMinArea);
    if (!crop.has_max_aspect()) crop.set_max_aspect(kMaxAspect);
  }
  fill_list(known.normalization.mean, *data.mutable_normalization()->mutable_mean());
  fill_list(known.normalization.stddev, *data.mutable_normalization()->mutable_stddev());
}

}  // namespace arbalest::jobs
