#include "dataflow/input/batches/cached_data.h"

#include <memory>
#include <span>

#include "dataflow/input/images/stored_images.h"
#include "engine/base/error.h"
#include "engine/waiting.h"

namespace arbalest::dataflow {

namespace {

// Copies `values` to the device; the copy is complete when `stream` has passed it.
template <typename T>
const T* upload(std::span<const T> values, engine::Device& device, engine::Stream& stream, engine::Buffer& buffer) {
  buffer = device.allocate(values.size_bytes());
  stream.copy(buffer.data(), values.data(), values.size_bytes(), "dataset");
  return buffer.as<const T>();
}

}  // namespace

CachedData::CachedData(const Dataset& dataset, engine::Device& device) {
  const std::optional<StoredBytes> stored = dataset.stored_bytes();
  ARBALEST_CHECK(stored.has_value());
  examples_.pixels = stored->pixels.data();
  examples_.classes = stored->labels.data();
  examples_.normalized = stored->normalized.data();
  const engine::Shape& image = dataset.description().image();
  examples_.channels = image[0];
  examples_.height = image[1];
  examples_.width = image[2];
  examples_.examples = dataset.size();
  examples_.augmentation = stored->augmentation;
  if (!device.is_cuda()) return;
  const std::unique_ptr<engine::Stream> stream =
      device.create_stream({.name = "upload", .role = engine::StreamRole::kTransfer});
  examples_.pixels = upload(stored->pixels, device, *stream, pixels_);
  examples_.classes = upload(stored->labels, device, *stream, classes_);
  examples_.normalized = upload(stored->normalized, device, *stream, normalized_);
  engine::wait_for(*stream);
}

std::size_t CachedData::device_bytes(const InputDescription& description, std::int64_t examples,
                                     const engine::Device& device) {
  if (!device.is_cuda()) return 0;
  constexpr std::size_t kByteValues = 256;
  const std::size_t normalized = static_cast<std::size_t>(description.image()[0]) * kByteValues * sizeof(float);
  return ByteImages::bytes(description, examples) + normalized;
}

engine::GatherExamples CachedData::gather(const GatherBuffers& buffers) const {
  engine::GatherExamples task = examples_;
  task.indices = buffers.indices;
  task.images = buffers.images;
  task.labels = buffers.labels;
  task.batch = buffers.batch;
  task.step = buffers.step;
  ARBALEST_CHECK(task.step != nullptr || !task.augmentation.changes_images());
  return task;
}

}  // namespace arbalest::dataflow
