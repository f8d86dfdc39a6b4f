#include "saved_model/model_description.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace {

using Input = ModelDescription::Input;
using nlohmann::json;

constexpr const char* kFormat = "format";
constexpr const char* kJob = "job";
constexpr const char* kInput = "input";
constexpr const char* kShape = "shape";
constexpr const char* kColors = "colors";
constexpr const char* kMean = "mean";
constexpr const char* kStddev = "stddev";
constexpr const char* kResize = "resize";
constexpr const char* kInterpolation = "interpolation";
constexpr const char* kCrop = "crop";
constexpr const char* kLuma = "luma";
constexpr const char* kOrientation = "orientation";
constexpr const char* kJpeg = "jpeg";
constexpr const char* kOutputs = "outputs";
constexpr const char* kClassNames = "class_names";
constexpr const char* kFirstLabel = "first_label";
constexpr const char* kIds = "ids";

struct InputName {
  Input input;
  const char* name;
};
constexpr std::array<InputName, 3> kInputNames = {
    {{Input::kImage, "image"}, {Input::kNumbers, "numbers"}, {Input::kIds, "ids"}}};

// The texts of a rule with two values, the value of today's rules first.
struct RuleTexts {
  const char* name;
  const char* usual;
  const char* other;
};
constexpr RuleTexts kLumaTexts = {kLuma, "BT.601", "libpng"};
constexpr RuleTexts kOrientationTexts = {kOrientation, "applied", "ignored"};
constexpr RuleTexts kJpegTexts = {kJpeg, "whole", "reduced"};

// The shortest texts that stand for the same numbers.
std::string list_text(const auto& numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

class Reader {
 public:
  explicit Reader(const Metadata& metadata) : metadata_(metadata) {}

  ModelDescription read() const {
    ModelDescription description;
    description.job = text(kJob);
    const std::string& input = text(kInput);
    const auto known = std::ranges::find(kInputNames, std::string_view(input), &InputName::name);
    if (known == kInputNames.end()) fail(kInput, "it is none of image, numbers and ids");
    description.input = known->input;
    description.shape = read_shape();
    description.outputs = positive(kOutputs);
    if (description.input == Input::kIds) {
      description.ids = list<std::int64_t>(kIds);
      if (std::cmp_not_equal(description.ids.size(), description.shape[0]))
        fail(kIds, "it must have one number for each column");
      return description;
    }
    description.normalization = {channel_numbers(kMean, description), channel_numbers(kStddev, description)};
    if (std::ranges::any_of(description.normalization.stddev, [](float value) { return !(value > 0.0F); })) {
      fail(kStddev, "it is not positive");
    }
    if (metadata_.contains(kResize)) description.resize = static_cast<int>(positive(kResize));
    if (description.reads_image_files()) description.pixels = read_pixel_rules();
    if (metadata_.contains(kFirstLabel)) description.first_label = whole(kFirstLabel);
    read_class_names(description);
    return description;
  }

 private:
  [[noreturn]] static void fail(const char* name, std::string_view problem) {
    engine::fail(engine::ErrorKind::kCheckpoint, "its description is damaged: '{}' cannot be used: {}", name, problem);
  }

  const std::string& text(const char* name) const {
    const auto found = metadata_.find(name);
    if (found == metadata_.end()) fail(name, "it is missing");
    return found->second;
  }

  dataflow::PixelRules read_pixel_rules() const {
    const bool are_recorded = std::ranges::any_of(std::array{kLuma, kOrientation, kJpeg},
                                                  [&](const char* name) { return metadata_.contains(name); });
    if (!are_recorded) return dataflow::kUnrecordedRules;
    return {.luma = is_usual(kLumaTexts) ? dataflow::PixelRules::Luma::kBt601 : dataflow::PixelRules::Luma::kLibpng,
            .is_oriented = is_usual(kOrientationTexts),
            .is_reduced = !is_usual(kJpegTexts)};
  }

  bool is_usual(const RuleTexts& texts) const {
    const std::string& value = text(texts.name);
    if (value != texts.usual && value != texts.other) {
      fail(texts.name, fmt::format("it is neither '{}' nor '{}'", texts.usual, texts.other));
    }
    return value == texts.usual;
  }

  json parsed(const char* name) const {
    json value = json::parse(text(name), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded()) fail(name, "it is no JSON value");
    return value;
  }

  std::int64_t whole(const char* name) const {
    const json value = parsed(name);
    if (!value.is_number_integer()) fail(name, "it is no whole number");
    return value.get<std::int64_t>();
  }

  std::int64_t positive(const char* name) const {
    const std::int64_t number = whole(name);
    if (number < 1 || number > std::numeric_limits<std::int32_t>::max()) fail(name, "it is out of range");
    return number;
  }

  template <typename T>
  std::vector<T> list(const char* name) const {
    const json value = parsed(name);
    const auto is_right = [](const json& element) {
      return std::is_same_v<T, float> ? element.is_number() : element.is_number_integer();
    };
    if (!value.is_array() || value.empty() || !std::ranges::all_of(value, is_right))
      fail(name, "it is no list of numbers");
    std::vector<T> numbers = value.get<std::vector<T>>();
    if constexpr (std::is_same_v<T, float>) {
      if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) {
        fail(name, "it has a number that is not finite");
      }
    }
    return numbers;
  }

  engine::Shape read_shape() const {
    const std::vector<std::int64_t> extents = list<std::int64_t>(kShape);
    const bool is_ids = text(kInput) == "ids";
    constexpr std::int64_t kMost = 1'000'000;
    if (extents.size() != (is_ids ? 1U : 3U)) fail(kShape, "it has another number of dimensions");
    engine::Shape shape;
    for (const std::int64_t extent : extents) {
      if (extent < 1 || extent > kMost) fail(kShape, "it is out of range");
      shape.append(extent);
    }
    return shape;
  }

  std::vector<float> channel_numbers(const char* name, const ModelDescription& description) const {
    std::vector<float> numbers = list<float>(name);
    if (numbers.size() != 1 && std::cmp_not_equal(numbers.size(), description.shape[0])) {
      fail(name, "it must have one value per channel");
    }
    return numbers;
  }

  void read_class_names(ModelDescription& description) const {
    if (!metadata_.contains(kClassNames)) return;
    const json names = parsed(kClassNames);
    if (!names.is_array() || !std::ranges::all_of(names, [](const json& name) { return name.is_string(); })) {
      fail(kClassNames, "it is no list of texts");
    }
    if (std::cmp_not_equal(names.size(), description.outputs))
      fail(kClassNames, "it must have one name for each output");
    description.class_names = names.get<std::vector<std::string>>();
    const std::set<std::string_view> unlike(description.class_names.begin(), description.class_names.end());
    if (unlike.size() != description.class_names.size()) fail(kClassNames, "a name is there twice");
    const auto is_line = [](const std::string& name) {
      return !name.empty() && std::ranges::all_of(name, [](unsigned char c) { return c >= ' ' && c != 0x7F; });
    };
    if (!std::ranges::all_of(description.class_names, is_line)) {
      fail(kClassNames, "a name is empty or has a control character");
    }
  }

  const Metadata& metadata_;
};

}  // namespace

std::string ModelDescription::label(std::int64_t output) const {
  if (class_names.empty()) return std::to_string(first_label + output);
  return class_names.at(static_cast<std::size_t>(output));
}

bool ModelDescription::operator==(const ModelDescription& other) const {
  return to_metadata(*this) == to_metadata(other);
}

Metadata to_metadata(const ModelDescription& description) {
  const auto input = std::ranges::find(kInputNames, description.input, &InputName::input);
  Metadata metadata = {{kFormat, "arbalest"},
                       {kJob, description.job},
                       {kInput, input->name},
                       {kShape, list_text(description.shape)},
                       {kOutputs, std::to_string(description.outputs)}};
  if (description.input == Input::kIds) {
    metadata[kIds] = list_text(description.ids);
    return metadata;
  }
  metadata[kMean] = list_text(description.normalization.mean);
  metadata[kStddev] = list_text(description.normalization.stddev);
  if (description.input == Input::kImage && description.shape[0] == 3) metadata[kColors] = "RGB";
  if (description.input == Input::kImage && description.shape[0] == 1) metadata[kColors] = "gray";
  if (description.reads_image_files()) {
    const dataflow::PixelRules& pixels = description.pixels;
    const auto put = [&](const RuleTexts& texts, bool is_usual) {
      metadata[texts.name] = is_usual ? texts.usual : texts.other;
    };
    put(kLumaTexts, pixels.luma == dataflow::PixelRules::Luma::kBt601);
    put(kOrientationTexts, pixels.is_oriented);
    put(kJpegTexts, !pixels.is_reduced);
  }
  if (description.resize) {
    metadata[kResize] = std::to_string(*description.resize);
    metadata[kInterpolation] = "bilinear, antialiased";  // dataflow/input/images/resample.h
    metadata[kCrop] = "center";
  }
  if (description.first_label != 0) metadata[kFirstLabel] = std::to_string(description.first_label);
  if (!description.class_names.empty()) metadata[kClassNames] = json(description.class_names).dump();
  return metadata;
}

void note_present_rules(Metadata& metadata) {
  if (!metadata.contains(kInput)) metadata[kLuma] = kLumaTexts.usual;
}

bool has_present_rules(const Metadata& metadata) { return metadata.contains(kLuma); }

std::optional<ModelDescription> description_in(const Metadata& metadata) {
  if (!metadata.contains(kInput)) return std::nullopt;
  return Reader(metadata).read();
}

}  // namespace arbalest::jobs
