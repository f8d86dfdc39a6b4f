#include "options/data/data_defaults.h"

#include <filesystem>
#include <vector>

#include "dataflow/models/fields/field_defaults.h"
#include "options/data/known_datasets.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

using Floats = google::protobuf::RepeatedField<float>;

void fill_list(const std::vector<float>& defaults, Floats& values) {
  if (values.empty()) values.Assign(defaults.begin(), defaults.end());
}

void fill_max_skipped(v1::Decoding& decoding) {
  if (decoding.on_unreadable() == v1::Decoding::SKIP) dataflow::fill_field(decoding, "max_skipped");
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
  dataflow::fill_fields(*data.GetReflection()->MutableMessage(&data, source_field(data)));
  make_directory_absolute(data, file);
  if (data.has_libsvm()) return;  // the other defaults are for dense examples
  if (data.has_validation()) dataflow::fill_fields(*data.mutable_validation());
  const KnownDataset known = known_dataset(data);
  if (data.class_names().empty()) {
    data.mutable_class_names()->Assign(known.class_names.begin(), known.class_names.end());
  }
  if (data.has_images()) fill_max_skipped(*data.mutable_images()->mutable_decoding());
  if (data.has_tfrecord()) fill_max_skipped(*data.mutable_tfrecord()->mutable_decoding());
  if (data.has_npy() && !data.npy().has_features()) dataflow::fill_field(*data.mutable_npy(), "channels");
  if (data.has_ratings()) return;  // the other defaults are for images
  dataflow::fill_fields(*data.mutable_augmentation());
  fill_list(known.normalization.mean, *data.mutable_normalization()->mutable_mean());
  fill_list(known.normalization.stddev, *data.mutable_normalization()->mutable_stddev());
}

}  // namespace arbalest::jobs
