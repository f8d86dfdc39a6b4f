#include "options/data/data_reader.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/formats/csv.h"
#include "dataflow/input/formats/npy.h"
#include "dataflow/models/fields/field_ranges.h"
#include "messages/text.h"
#include "options/data/class_names_check.h"
#include "options/data/known_datasets.h"
#include "options/data/validation_reader.h"

namespace arbalest::jobs {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

namespace {

// Bounds of mean and stddev for pixels that are bytes, and for numbers of any size. With a smaller stddev the values
// that the model reads are too large to learn from.
constexpr dataflow::Range<float> kPixelMean{0.0F, 1.0F};
constexpr dataflow::Range<float> kPixelStddev{1e-6F, 1000.0F};
constexpr dataflow::Range<float> kNumberMean{-1e6F, 1e6F};
constexpr dataflow::Range<float> kNumberStddev{1e-6F, 1e6F};

constexpr int kLongestSide = 4096;

using Floats = google::protobuf::RepeatedField<float>;

class DataReader {
 public:
  DataReader(const v1::Data& data, dataflow::FieldIssues& issues)
      : data_(data), known_(known_dataset(data)), issues_(issues) {}

  DataOptions read() {
    options_.kind = known_.kind;
    options_.input = known_.input;
    options_.test_examples = known_.test_examples;
    read_validation(data_, known_, options_, issues_);
    if (data_.has_images()) check_max_skipped(data_.images().decoding());
    if (data_.has_tfrecord()) check_max_skipped(data_.tfrecord().decoding());
    dataflow::check_fields(data_, "data", issues_);
    read_directory();
    if (data_.has_images()) read_encoded(data_.images());
    if (data_.has_tfrecord()) read_tfrecord(data_.tfrecord());
    if (data_.has_npy()) read_npy(data_.npy());
    if (data_.has_csv()) read_csv(data_.csv());
    if (data_.has_ratings()) {
      read_ratings(data_.ratings());
      return std::move(options_);  // the other fields are for images
    }
    read_class_names();
    if (!options_.input.is_known()) return std::move(options_);  // the size of the images is unknown
    read_augmentation();
    const bool are_numbers = known_.kind == DataOptions::Kind::kNumbers;
    options_.normalization.mean =
        read_list("mean", data_.normalization().mean(), are_numbers ? kNumberMean : kPixelMean);
    options_.normalization.stddev =
        read_list("stddev", data_.normalization().stddev(), are_numbers ? kNumberStddev : kPixelStddev);
    return std::move(options_);
  }

 private:
  void read_directory() {
    const FieldDescriptor* field = directory_field(data_);
    if (field == nullptr) return;
    const Message& source = data_.GetReflection()->GetMessage(data_, source_field(data_));
    options_.directory = source.GetReflection()->GetString(source, field);
    if (options_.directory.empty()) {
      issues_.add(path_of("directory"), "directory is empty; '.' is the data root itself");
    }
  }

  // Reads the name of a file or folder, or of several, in the directory.
  std::string read_name(const std::string& field, const std::string& name) {
    if (name.empty()) issues_.add(path_of(field), fmt::format("{} is empty; leave it out to get its default", field));
    return name;
  }

  // Source: Images or Tfrecord.
  template <typename Source>
  void read_encoded(const Source& source) {
    options_.train = read_name("train", source.train());
    options_.test = read_name("test", source.test());
    const v1::Decoding& decoding = source.decoding();
    const bool has_size = read_decoding(decoding, path_of("decoding."));
    options_.pixels = {.is_oriented = source.orientation() != v1::Images::IGNORE, .is_reduced = decoding.reduced()};
    if (is_sound("classes") && has_size) {
      options_.input =
          dataflow::image_input({decoding.channels(), decoding.height(), decoding.width()}, source.classes());
    }
  }

  void read_tfrecord(const v1::Tfrecord& source) {
    read_encoded(source);
    options_.first_label = source.first_label();
  }

  void read_npy(const v1::Npy& source) {
    options_.train = read_name("train_images", source.train_images());
    options_.train_labels = read_name("train_labels", source.train_labels());
    options_.test = read_name("test_images", source.test_images());
    options_.test_labels = read_name("test_labels", source.test_labels());
    options_.numbers.load = [](const dataflow::SplitFiles& files) { return dataflow::load_npy<float>(files); };
    if (source.has_features()) {
      if (read_features(source) && is_sound("classes")) {
        options_.input = dataflow::image_input({source.features(), 1, 1}, source.classes());
      }
      return;
    }
    const auto require = [&](const char* field, bool is_there) {
      if (!is_there)
        issues_.add(path_of(field), fmt::format("{0} is missing; set it to the {0} of the model's images", field));
    };
    require("height", source.has_height());
    require("width", source.has_width());
    if (is_sound("height") && is_sound("width") && is_sound("channels") && is_sound("classes")) {
      options_.input = dataflow::image_input({source.channels(), source.height(), source.width()}, source.classes());
    }
  }

  // Rows of numbers have no size of an image.
  bool read_features(const v1::Npy& source) {
    bool are_alone = true;
    const auto exclude = [&](const char* field, bool is_given) {
      if (!is_given) return;
      are_alone = false;
      issues_.add(path_of(field),
                  fmt::format("{} is for images, and features for rows of numbers; remove one of them", field));
    };
    exclude("height", source.has_height());
    exclude("width", source.has_width());
    exclude("channels", source.has_channels());
    return are_alone && is_sound("features");
  }

  void read_csv(const v1::Csv& source) {
    options_.train = read_name("train", source.train());
    options_.test = read_name("test", source.test());
    const std::string label = read_name("label", source.label());
    options_.numbers = {
        .load = [label](const dataflow::SplitFiles& files) { return dataflow::load_csv(files, label); },
        .class_names = [label](const std::filesystem::path& file) { return dataflow::csv_class_names(file, label); }};
    if (is_sound("features") && is_sound("classes")) {
      options_.input = dataflow::image_input({source.features(), 1, 1}, source.classes());
    }
  }

  void read_ratings(const v1::Ratings& source) {
    options_.train = read_name("train_ids", source.train_ids());
    options_.train_labels = read_name("train_targets", source.train_targets());
    options_.test = read_name("test_ids", source.test_ids());
    options_.test_labels = read_name("test_targets", source.test_targets());
    if (data_.has_augmentation())
      issues_.add("data.augmentation", "augmentation is for images, and ratings are not images");
    if (data_.has_normalization())
      issues_.add("data.normalization", "normalization is for images, and ratings are not images");
    if (!data_.class_names().empty()) issues_.add("data.class_names", "ratings have no classes, so they have no names");
    if (!is_sound("sizes")) return;
    options_.input = dataflow::ratings_input({source.sizes().begin(), source.sizes().end()});
  }

  void check_max_skipped(const v1::Decoding& decoding) {
    if (decoding.on_unreadable() == v1::Decoding::SKIP || !decoding.has_max_skipped()) return;
    issues_.add(path_of("decoding.max_skipped"),
                "max_skipped has no effect, because the job stops at the first unreadable image; add on_unreadable: "
                "SKIP, or remove max_skipped");
  }

  // Returns whether the images' size is known.
  bool read_decoding(const v1::Decoding& decoding, const std::string& path) {
    const bool has_size = is_sound("decoding.height") && is_sound("decoding.width");
    const bool has_channels = decoding.channels() == 1 || decoding.channels() == 3;
    if (!has_channels) {
      issues_.add(path + "channels", fmt::format("channels must be 1 or 3, not {}", decoding.channels()));
    }
    if (has_size && decoding.has_resize()) {
      issues_.add(path + "resize",
                  dataflow::out_of_range("resize", decoding.resize(),
                                         {std::max(decoding.height(), decoding.width()), kLongestSide}));
      options_.resize = decoding.resize();
    }
    const bool skips = decoding.on_unreadable() == v1::Decoding::SKIP;
    options_.on_unreadable = skips ? dataflow::OnUnreadable::kSkip : dataflow::OnUnreadable::kStop;
    if (skips) options_.skip_limit.fraction = decoding.max_skipped();
    return has_size && has_channels;
  }

  // Path of a field of the dataset's message.
  std::string path_of(const std::string& field) const { return fmt::format("data.{}.{}", known_.name, field); }

  // Whether a field of the dataset's message has no issue.
  bool is_sound(const std::string& field) const { return !issues_.has_within(path_of(field)); }

  // The number of classes is unknown if that field of the dataset is wrong.
  void read_class_names() {
    options_.class_names.assign(data_.class_names().begin(), data_.class_names().end());
    if (options_.class_names.empty()) return;
    for (const NameProblem& problem : class_name_problems(options_.class_names)) {
      issues_.add(fmt::format("data.class_names[{}]", problem.place), problem.text);
    }
    if (!options_.input.is_known()) return;
    const std::string problem = class_count_problem(options_.class_names.size(), options_.input.classes());
    if (!problem.empty()) issues_.add("data.class_names", "class_names " + problem);
  }

  void read_random_crop(const std::string& path) {
    const v1::RandomResizedCrop& crop = data_.augmentation().random_resized_crop();
    const engine::RandomResizedCrop random_crop{.min_area = static_cast<float>(crop.min_area()),
                                                .log_max_aspect = static_cast<float>(std::log(crop.max_aspect()))};
    if (!data_.has_images() && !data_.has_tfrecord()) {
      options_.augmentation.random_crop = random_crop;
      if (!issues_.has_within(path)) check_crop_fits(path, crop);
      return;
    }
    if (!options_.resize) {
      issues_.add(path,
                  fmt::format("random_resized_crop needs {}, the size of test images", path_of("decoding.resize")));
    }
    options_.random_crop = random_crop;
  }

  void check_crop_fits(const std::string& path, const v1::RandomResizedCrop& crop) {
    const auto [shorter, longer] = std::minmax({options_.input.image()[1], options_.input.image()[2]});
    const double most = crop.max_aspect() * static_cast<double>(shorter) / static_cast<double>(longer);
    if (crop.min_area() <= most) return;
    issues_.add(path, fmt::format("of images of {} x {} pixels a rectangle of max_aspect {} is at most {:.3g} of the "
                                  "area, which is below min_area, {}; raise max_aspect or lower min_area",
                                  options_.input.image()[1], options_.input.image()[2], crop.max_aspect(), most,
                                  crop.min_area()));
  }

  void read_augmentation() {
    const v1::Augmentation& augmentation = data_.augmentation();
    const auto height = static_cast<int>(options_.input.image()[1]);
    const auto width = static_cast<int>(options_.input.image()[2]);
    const std::string path = "data.augmentation.";
    issues_.add(path + "padding",
                dataflow::out_of_range("padding", augmentation.padding(), {0, std::min(height, width) - 1}));
    issues_.add(path + "cutout", dataflow::out_of_range("cutout", augmentation.cutout(),
                                                        {0, height * width == 1 ? 0 : 2 * std::max(height, width)}));
    options_.augmentation = {.padding = augmentation.padding(),
                             .cutout = augmentation.cutout(),
                             .horizontal_flip = augmentation.horizontal_flip()};
    if (augmentation.has_random_resized_crop()) read_random_crop(path + "random_resized_crop");
  }

  std::vector<float> read_list(const std::string& name, const Floats& values, const dataflow::Range<float>& range) {
    const std::string path = "data.normalization." + name;
    const std::int64_t channels = options_.input.image()[0];
    for (int i = 0; i < values.size(); ++i) {
      issues_.add(fmt::format("{}[{}]", path, i), dataflow::out_of_range(name, values[i], range));
    }
    if (values.size() != 1 && values.size() != channels) {
      issues_.add(
          path, fmt::format("{} has {} numbers, but the images have {}; give one for each channel, or one for "
                            "all",
                            name, values.size(), channels == 1 ? "one channel" : fmt::format("{} channels", channels)));
    }
    return {values.begin(), values.end()};
  }

  const v1::Data& data_;
  const KnownDataset known_;
  dataflow::FieldIssues& issues_;
  DataOptions options_;
};

}  // namespace

DataOptions read_data(const v1::Data& data, dataflow::FieldIssues& issues) { return DataReader(data, issues).read(); }

}  // namespace arbalest::jobs
