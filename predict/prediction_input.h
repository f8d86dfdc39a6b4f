// The examples that a model is asked about: image files, or an array.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataflow/input/dataset.h"
#include "saved_model/model_description.h"

namespace arbalest::jobs {

// A dataset whose unreadable examples do not end the work: they are zeros, and the error is kept. A path that
// holds a NUL is unreadable.
class TolerantDataset final : public dataflow::Dataset {
 public:
  // `files`: by example; empty: the examples have numbers only.
  explicit TolerantDataset(std::unique_ptr<const dataflow::Dataset> data, std::vector<std::string> files = {})
      : data_(std::move(data)), files_(std::move(files)) {}

  const std::string& name() const noexcept override { return data_->name(); }
  const dataflow::InputDescription& description() const noexcept override { return data_->description(); }
  std::int64_t size() const noexcept override { return data_->size(); }
  void read(std::int64_t example, const dataflow::ExamplePosition& position,
            std::span<const dataflow::InputTensor> features) const override;
  // Writes 0: nobody knows the label.
  void read_label(std::int64_t example, const dataflow::InputTensor& label) const override;
  std::vector<std::string> warnings() const override { return data_->warnings(); }
  std::size_t memory_bytes() const noexcept override { return data_->memory_bytes(); }

  bool has_files() const noexcept { return !files_.empty(); }
  // The file, or the number.
  std::string source(std::int64_t example) const {
    return has_files() ? files_.at(static_cast<std::size_t>(example)) : std::to_string(example);
  }
  // The error of an example that was read, without its file, and then forgotten; "" if it was readable.
  std::string take_error(std::int64_t example) const;

 private:
  std::unique_ptr<const dataflow::Dataset> data_;
  std::vector<std::string> files_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<std::int64_t, std::string> errors_;
};

// Returns what the model reads.
dataflow::InputDescription input_of(const ModelDescription& description);

struct PredictionInput {
  std::unique_ptr<const TolerantDataset> data;
  std::vector<std::string> warnings = {};  // such as entries of a folder that are no images
};

// Prepares the files for the model that `description` describes; none is opened before it is read. Throws kUsage if the
// model does not read images.
PredictionInput open_files(const ModelDescription& description, std::vector<std::string> files);

// Each of `inputs` is an image; a folder, which is searched for images (dataflow/input/formats/image_names.h) with
// all folders in it, in the order of names; or a text file that lists one image per line, with paths relative to the
// folder of the list. An array
// (.npy) must be the only input. A folder in a folder that cannot be listed is an example with an error, and so is one
// of several inputs that does not exist or cannot be opened. Throws kData if the only input does not exist or cannot be
// opened, if a folder or list has no image, and as open_prediction_array() does.
PredictionInput open_inputs(const ModelDescription& description, const std::vector<std::string>& inputs);

}  // namespace arbalest::jobs
