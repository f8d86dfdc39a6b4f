// The description of a saved model tells its reader how an input is prepared, and what the outputs mean. Files of
// models carry it as pairs of texts: the metadata of model.safetensors, best.safetensors and of a checkpoint's model.
// docs/predict.md lists the pairs. Other programs read their names; do not rename them.
//
// A description holds nothing that depends on learners, processes, paths, devices or time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/input/dataset.h"
#include "dataflow/input/images/pixel_rules.h"
#include "engine/base/shape.h"

namespace arbalest::jobs {

struct ModelDescription {
  enum class Input {
    kImage,    // bytes [c, h, w]; the model reads (byte / 255 - mean) / stddev
    kNumbers,  // float32 [c, h, w]; the model reads (number - mean) / stddev
    kIds       // int32 [columns]
  };

  std::string job;  // name
  Input input = Input::kImage;
  engine::Shape shape;                    // of one example: [c, h, w]; for ids [columns]
  dataflow::Normalization normalization;  // unused for ids
  // Images of other sizes: the length to which their shorter side is scaled before the center is cut out. None: images
  // must have the model's size.
  std::optional<int> resize;
  // How image files become bytes, for images of 1 or 3 channels. A file without such rules is of an older version, and
  // has dataflow::kUnrecordedRules.
  dataflow::PixelRules pixels = {};
  std::int64_t outputs = 1;              // classes; 1 for ids: the number that is predicted
  std::vector<std::string> class_names;  // [outputs]; empty: the classes have no names, and for ids
  std::int64_t first_label = 0;          // the number that the dataset's files give class 0
  // The number of distinct ids, by column; only for ids.
  std::vector<std::int64_t> ids;

  bool reads_image_files() const { return input == Input::kImage && (shape[0] == 1 || shape[0] == 3); }

  // The name of an output: that of its class, else the number that the dataset's files give the class.
  std::string label(std::int64_t output) const;

  bool operator==(const ModelDescription&) const;
};

using Metadata = std::map<std::string, std::string>;

// The pairs, with {"format", "arbalest"}.
Metadata to_metadata(const ModelDescription& description);

// A model without a description, such as one that another program has trained, is read as the job beside it says. The
// note tells such a model from those of older versions, which read image files by other rules. No effect on a
// description.
void note_present_rules(Metadata& metadata);
bool has_present_rules(const Metadata& metadata);

// Reads them back. None if the file holds no description, such as one of an older version. Throws
// ErrorKind::kCheckpoint, naming the pair but not the file, if the description is damaged: also by class names that
// repeat, are empty or have control characters.
std::optional<ModelDescription> description_in(const Metadata& metadata);

}  // namespace arbalest::jobs
