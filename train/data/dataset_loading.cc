#include "train/data/dataset_loading.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "dataflow/input/digits/digits.h"
#include "dataflow/input/formats/cifar.h"
#include "dataflow/input/formats/idx.h"
#include "dataflow/input/formats/image_files.h"
#include "dataflow/input/formats/image_records.h"
#include "dataflow/input/formats/npy.h"
#include "dataflow/input/formats/ratings.h"
#include "dataflow/input/images/encoded_images.h"
#include "dataflow/input/images/selected_examples.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/base/error.h"
#include "options/data/validation_check.h"
#include "train/data/data_folder.h"

namespace arbalest::jobs {

using dataflow::Split;

namespace {

class Loader {
 public:
  Loader(const DataOptions& data, const std::string& data_root, Split split, engine::host::Pool& pool,
         std::vector<std::string>& warnings, Decoding ahead, const engine::host::MemoryBudget& budget)
      : data_(data),
        directory_(std::filesystem::path(data_root) / data.directory),
        split_(split),
        pool_(pool),
        warnings_(warnings),
        ahead_(ahead),
        budget_(budget) {}

  // Splits the training set if the job has a validation set.
  TrainingSets load_sets() {
    divides_ = data_.validation.has_value();
    TrainingSets sets;
    sets.training = load();
    sets.validation = std::move(validation_);
    return sets;
  }

  std::unique_ptr<dataflow::Dataset> load() {
    switch (data_.kind) {
      case DataOptions::Kind::kDigits: return varied(dataflow::load_digits(split_, data_.normalization, pool_));
      case DataOptions::Kind::kIdx:
        return varied(dataflow::load_idx(
            {data_.directory, directory_, data_.input, data_.normalization, own().examples, own().labels, budget_},
            split_));
      case DataOptions::Kind::kCifar10: return varied(load_cifar(dataflow::CifarVersion::k10));
      case DataOptions::Kind::kCifar100: return varied(load_cifar(dataflow::CifarVersion::k100));
      case DataOptions::Kind::kImages:
        return decoded(dataflow::open_image_files(image_files(), split_, data_.input.classes(), warnings_));
      case DataOptions::Kind::kTfrecord:
        require_folder();
        return decoded(dataflow::open_image_records(image_records(), pool_));
      case DataOptions::Kind::kNpy: require_folder(); return varied(dataflow::load_npy<std::uint8_t>(split_files()));
      case DataOptions::Kind::kNumbers: require_folder(); return varied(data_.numbers.load(split_files()));
      case DataOptions::Kind::kRatings:
        require_folder();
        return divided(dataflow::load_ratings({name(), examples_file(), labels_file(), data_.input, budget_}));
      case DataOptions::Kind::kLibsvm: break;  // its rows are no Dataset (train/sparse)
    }
    engine::fail(engine::ErrorKind::kInternal, "unknown kind of data");
  }

 private:
  std::unique_ptr<dataflow::ByteImages> load_cifar(dataflow::CifarVersion version) const {
    return dataflow::load_cifar({version, directory_, data_.normalization, own().examples, budget_}, split_, warnings_);
  }

  std::string name() const { return fmt::format("{} {}", data_.directory, name_of(split_)); }

  // The validation set's own files; their names are empty if it has none.
  DataFiles own() const { return data_.validation_files.value_or(DataFiles{}); }

  DataFiles files() const {
    if (split_ == Split::kValidation) return own();
    return split_ == Split::kTrain ? DataFiles{data_.train, data_.train_labels}
                                   : DataFiles{data_.test, data_.test_labels};
  }

  dataflow::ImageFilesSource image_files() const {
    return {directory_, data_.train, data_.test, data_folder_hint(data_.directory), own().examples};
  }

  dataflow::ImageRecordsSource image_records() const {
    dataflow::ImageRecordsSource source{directory_, files().examples, data_.first_label, data_.input.classes(),
                                        data_.on_unreadable};
    if (split_ == Split::kValidation) source.other_patterns = {data_.train, data_.test};
    return source;
  }

  // Readers of arrays know nothing of a data root, so their errors would name a file only.
  void require_folder() const { require_data_folder(directory_, data_.directory); }

  std::filesystem::path examples_file() const { return directory_ / files().examples; }
  std::filesystem::path labels_file() const { return directory_ / files().labels; }

  dataflow::SplitFiles split_files() const {
    return {name(),  examples_file(),         labels_file(), data_.input, data_.normalization,
            budget_, directory_ / data_.train};
  }

  std::string validation_name() const {
    return (data_.kind == DataOptions::Kind::kDigits ? "digits" : data_.directory) + " validation";
  }

  // Returns the numbers of the validation examples. `labels`: those of all examples.
  std::vector<std::int64_t> chosen(std::span<const std::int32_t> labels, std::int64_t classes) const {
    const dataflow::ValidationRule& rule = data_.validation->rule;
    const std::string problem = validation_problem(rule, dataflow::class_sizes(labels, classes));
    if (!problem.empty()) throw data_.validation->error(problem);
    return dataflow::choose_validation(rule, labels, classes);
  }

  // Splitting examples off copies them.
  void require_copy(std::size_t bytes) const {
    budget_.require(bytes, validation_name(),
                    "name files of a validation set instead of splitting it off (data.validation), or use more memory");
  }

  template <typename Pixel>
  std::unique_ptr<dataflow::Dataset> varied(std::unique_ptr<dataflow::StoredImages<Pixel>> images) {
    if (divides_) {
      const std::vector<std::int64_t> validating = chosen(images->labels(), data_.input.classes());
      require_copy(dataflow::StoredImages<Pixel>::bytes(data_.input, std::ssize(validating)));
      validation_ = images->split_off(validation_name(), validating);
    }
    return augmented(std::move(images));
  }

  std::unique_ptr<dataflow::Dataset> divided(std::unique_ptr<dataflow::Ratings> ratings) {
    if (divides_) {
      require_copy(ratings->memory_bytes());
      const std::vector<std::int32_t> one_class(static_cast<std::size_t>(ratings->size()), 0);
      validation_ = ratings->split_off(validation_name(), chosen(one_class, 1));
    }
    return ratings;
  }

  template <typename Images>
  std::unique_ptr<dataflow::Dataset> augmented(std::unique_ptr<Images> images) const {
    if (split_ == Split::kTrain) images->augment(data_.augmentation);
    return images;
  }

  std::unique_ptr<dataflow::Dataset> decoded(std::unique_ptr<const dataflow::EncodedExamples> examples) {
    dataflow::Framing framing{.resize = data_.resize, .random_crop = {}, .seed = data_.augmentation.seed};
    if (divides_) {
      const std::shared_ptr<const dataflow::EncodedExamples> all = std::move(examples);
      std::vector<std::int32_t> labels;
      for (std::int64_t example = 0; example < all->size(); ++example) labels.push_back(all->label(example));
      std::vector<std::int64_t> validating = chosen(labels, data_.input.classes());
      examples = std::make_unique<dataflow::SelectedExamples>(all, dataflow::others(validating, all->size()));
      auto validation = std::make_unique<dataflow::SelectedExamples>(all, std::move(validating));
      validation_ = framed(validation_name(), std::move(validation), framing, [](auto images) { return images; });
    }
    if (split_ == Split::kTrain) framing.random_crop = data_.random_crop;
    return framed(name(), std::move(examples), framing, [this](auto images) { return augmented(std::move(images)); });
  }

  // `finish` turns the images into the dataset. It gets decoded images if they fit into memory, else encoded ones.
  std::unique_ptr<dataflow::Dataset> framed(std::string name, std::unique_ptr<const dataflow::EncodedExamples> examples,
                                            const dataflow::Framing& framing, const auto& finish) {
    auto images =
        std::make_unique<dataflow::EncodedImages>(std::move(name), data_.input, data_.normalization,
                                                  std::move(examples), framing, data_.pixels, data_.on_unreadable);
    if (ahead_ == Decoding::kAhead && may_be_kept(*images)) {
      if (auto kept = images->decode_all(pool_, warnings_, data_.skip_limit)) return finish(std::move(kept));
    }
    return finish(std::move(images));
  }

  bool may_be_kept(const dataflow::EncodedImages& images) const {
    const std::size_t bytes = dataflow::ByteImages::bytes(data_.input, images.size());
    return !images.is_random() && bytes <= budget_.left_bytes() / 4;
  }

  const DataOptions& data_;
  std::filesystem::path directory_;
  Split split_;
  engine::host::Pool& pool_;
  std::vector<std::string>& warnings_;
  Decoding ahead_;
  const engine::host::MemoryBudget& budget_;
  bool divides_ = false;  // whether the training set is split
  std::unique_ptr<dataflow::Dataset> validation_;
};

// The files of the training and test set, of kinds that cannot tell by their examples which set these are of.
std::vector<std::string> other_files(const DataOptions& data) {
  switch (data.kind) {
    case DataOptions::Kind::kIdx:
      return {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte",
              "t10k-images-idx3-ubyte.gz"};
    case DataOptions::Kind::kCifar10:
      return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
              "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
    case DataOptions::Kind::kCifar100: return {"train.bin", "test.bin"};
    case DataOptions::Kind::kNpy:
    case DataOptions::Kind::kNumbers:
    case DataOptions::Kind::kRatings: return {data.train, data.test};
    default: return {};
  }
}

// Throws if the validation set is a file of another set under another name, such as an absolute path.
void check_own_file(const DataOptions& data, const std::string& data_root) {
  const std::filesystem::path directory = std::filesystem::path(data_root) / data.directory;
  const std::filesystem::path file = data.validation_files->examples;
  for (const std::string& name : other_files(data)) {
    std::error_code unknown;                        // a file that is not there is no other's
    if (file.lexically_normal() == name) continue;  // the reader of the job knows what to do
    if (!std::filesystem::equivalent(directory / file, directory / name, unknown)) continue;
    engine::fail(engine::ErrorKind::kData, "{}: this is the file '{}' of the training or test set; {}",
                 (directory / file).string(), name,
                 data.kind == DataOptions::Kind::kCifar10 && name != "test_batch.bin"
                     ? fmt::format("write validation: \"{}\", so that training leaves it out", name)
                     : "name a file that is in no other set");
  }
}

// Throws if a validation set with files of its own does not fit the training set.
void check_fit(const TrainingSets& sets, const DataOptions& data, const std::string& data_root) {
  const std::string problem = own_validation_problem(class_sizes(*sets.training), class_sizes(*sets.validation));
  if (problem.empty()) return;
  const DataFiles& files = *data.validation_files;
  const std::filesystem::path directory = std::filesystem::path(data_root) / data.directory;
  engine::fail(engine::ErrorKind::kData, "{}: {}",
               (directory / (files.labels.empty() ? files.examples : files.labels)).string(), problem);
}

}  // namespace

std::vector<std::int64_t> class_sizes(const dataflow::Dataset& data) {
  if (data.description().predicts_numbers()) return {data.size()};
  std::vector<std::int32_t> labels;
  for (std::int64_t example = 0; example < data.size(); ++example) labels.push_back(class_of(data, example));
  return dataflow::class_sizes(labels, data.description().classes());
}

std::unique_ptr<dataflow::Dataset> load_dataset(const DataOptions& data, const std::string& data_root, Split split,
                                                engine::host::Pool& pool, std::vector<std::string>& warnings,
                                                Decoding ahead, const engine::host::MemoryBudget& budget) {
  return Loader(data, data_root, split, pool, warnings, ahead, budget).load();
}

TrainingSets load_training_sets(const DataOptions& data, const std::string& data_root, engine::host::Pool& pool,
                                std::vector<std::string>& warnings, const engine::host::MemoryBudget& budget) {
  TrainingSets sets = Loader(data, data_root, Split::kTrain, pool, warnings, Decoding::kAhead, budget).load_sets();
  if (!data.validation_files) return sets;
  check_own_file(data, data_root);
  sets.validation = load_dataset(data, data_root, Split::kValidation, pool, warnings, Decoding::kAhead, budget);
  check_fit(sets, data, data_root);
  return sets;
}

std::unique_ptr<dataflow::Dataset> load_validation_set(const DataOptions& data, const std::string& data_root,
                                                       engine::host::Pool& pool, std::vector<std::string>& warnings) {
  if (data.validation_files) return load_dataset(data, data_root, Split::kValidation, pool, warnings);
  return load_training_sets(data, data_root, pool, warnings).validation;
}

}  // namespace arbalest::jobs
