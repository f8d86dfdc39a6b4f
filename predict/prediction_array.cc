#include "predict/prediction_array.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "dataflow/input/formats/input_file.h"
#include "dataflow/input/formats/npy_array.h"
#include "dataflow/input/images/stored_images.h"
#include "engine/base/error.h"
#include "predict/prediction_input.h"

namespace arbalest::jobs {

namespace {

namespace fs = std::filesystem;
using dataflow::NpyHeader;
using engine::ErrorKind;
using engine::fail;
using Input = ModelDescription::Input;

void check_shape(const ModelDescription& model, const NpyHeader& header, const fs::path& path) {
  const std::vector<std::uint64_t> expected(model.shape.begin(), model.shape.end());
  std::vector<std::uint64_t> given = header.shape;
  std::vector<std::uint64_t> wanted = expected;
  const bool has_rows = !given.empty();
  if (has_rows) given.erase(given.begin());
  if (model.input != Input::kIds) {  // extents of 1 do not change the order of the elements
    std::erase(given, 1U);
    std::erase(wanted, 1U);
  }
  if (has_rows && given == wanted) return;
  fail(ErrorKind::kData, "{}: has the shape ({}), but the model '{}' reads (n, {}){}; transpose or reshape the array",
       path.string(), fmt::join(header.shape, ", "), model.job, fmt::join(expected, ", "),
       model.input == Input::kIds ? "" : ", where extents of 1 may be left out");
}

void check_type(const ModelDescription& model, const NpyHeader& header, const fs::path& path) {
  const bool are_numbers = header.type == "<f4" || header.type == "<f8";
  const char* expected = nullptr;
  switch (model.input) {
    case Input::kImage:
      if (header.type != "|u1") expected = "images of unsigned bytes ('|u1', numpy.uint8)";
      break;
    case Input::kNumbers:
      if (!are_numbers) expected = "floating-point numbers ('<f4', numpy.float32, or '<f8')";
      break;
    case Input::kIds:
      if (dataflow::integer_bytes(header.type) == 0) expected = "integers, little endian (such as '<i4', numpy.int32)";
      break;
  }
  if (expected == nullptr) return;
  fail(ErrorKind::kData, "{}: is of type '{}', but the model '{}' reads {}; convert it with astype()", path.string(),
       header.type, model.job, expected);
}

template <typename Pixel>
std::unique_ptr<const dataflow::Dataset> stored(const ModelDescription& model, const fs::path& path,
                                                std::vector<Pixel> pixels) {
  std::vector<std::int32_t> labels(pixels.size() / static_cast<std::size_t>(model.shape.elements()), 0);
  return std::make_unique<const dataflow::StoredImages<Pixel>>(path.string(), input_of(model), model.normalization,
                                                               std::move(pixels), std::move(labels));
}

// The rows are numbers, some of which may not be finite.
class NumberRows final : public dataflow::Dataset {
 public:
  explicit NumberRows(std::unique_ptr<const dataflow::Dataset> rows) : rows_(std::move(rows)) {}

  const std::string& name() const noexcept override { return rows_->name(); }
  const dataflow::InputDescription& description() const noexcept override { return rows_->description(); }
  std::int64_t size() const noexcept override { return rows_->size(); }
  std::size_t memory_bytes() const noexcept override { return rows_->memory_bytes(); }
  void read_label(std::int64_t example, const dataflow::InputTensor& label) const override {
    rows_->read_label(example, label);
  }
  void read(std::int64_t example, const dataflow::ExamplePosition& position,
            std::span<const dataflow::InputTensor> features) const override {
    rows_->read(example, position, features);
    const std::span numbers = features.front().as<float>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isfinite(numbers[i])) fail(ErrorKind::kData, "element {} is not finite as float32, once normalized", i);
    }
  }

 private:
  std::unique_ptr<const dataflow::Dataset> rows_;
};

class IdRows final : public dataflow::Dataset {
 public:
  IdRows(std::string name, const ModelDescription& model, dataflow::NpyArray ids)
      : name_(std::move(name)),
        description_(input_of(model)),
        ids_(std::move(ids)),
        id_bytes_(dataflow::integer_bytes(ids_.header.type)) {}

  const std::string& name() const noexcept override { return name_; }
  const dataflow::InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return static_cast<std::int64_t>(ids_.header.shape[0]); }
  std::size_t memory_bytes() const noexcept override { return ids_.bytes.size(); }
  void read_label(std::int64_t /*example*/, const dataflow::InputTensor& label) const override {
    label.as<float>().front() = 0.0F;
  }
  void read(std::int64_t example, const dataflow::ExamplePosition& /*position*/,
            std::span<const dataflow::InputTensor> features) const override {
    const std::span<const std::int64_t> counts = description_.ids();
    const std::span row = features.front().as<std::int32_t>();
    for (std::size_t column = 0; column < counts.size(); ++column) {
      const std::size_t place = static_cast<std::size_t>(example) * counts.size() + column;
      const std::int64_t id = dataflow::integer_at(ids_, id_bytes_, place);
      if (id < 0 || id >= counts[column]) {
        fail(ErrorKind::kData, "column {}: id {} is not in [0, {}), so the model has no weights for it", column, id,
             counts[column]);
      }
      row[column] = static_cast<std::int32_t>(id);
    }
  }

 private:
  std::string name_;
  dataflow::InputDescription description_;
  dataflow::NpyArray ids_;
  std::size_t id_bytes_;
};

}  // namespace

std::unique_ptr<const dataflow::Dataset> open_prediction_array(const ModelDescription& description,
                                                               const fs::path& path) {
  dataflow::InputFile file(path, /*is_raw=*/true);
  NpyHeader header = dataflow::read_npy_header(file);
  check_type(description, header, path);
  check_shape(description, header, path);
  switch (description.input) {
    case Input::kImage: return stored(description, path, dataflow::read_npy_content(file, header, 1));
    case Input::kNumbers:
      return std::make_unique<const NumberRows>(
          stored(description, path, dataflow::read_numbers(file, header, "element")));
    case Input::kIds: break;
  }
  std::vector<std::uint8_t> bytes = dataflow::read_npy_content(file, header, dataflow::integer_bytes(header.type));
  return std::make_unique<const IdRows>(path.string(), description,
                                        dataflow::NpyArray{std::move(header), std::move(bytes)});
}

}  // namespace arbalest::jobs
