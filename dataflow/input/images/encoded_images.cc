#include "dataflow/input/images/encoded_images.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "dataflow/input/images/framing.h"
#include "dataflow/input/images/image_decoder.h"
#include "dataflow/input/images/resample.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

using engine::Error;
using engine::ErrorKind;

EncodedImages::EncodedImages(std::string name, const InputDescription& description, const Normalization& normalization,
                             std::unique_ptr<const EncodedExamples> examples, const Framing& framing,
                             const PixelRules& rules, OnUnreadable on_unreadable)
    : name_(std::move(name)),
      description_(description),
      transform_(description.image(), normalization),
      examples_(std::move(examples)),
      framing_(framing),
      rules_(rules),
      on_unreadable_(on_unreadable) {}

std::vector<std::uint8_t> EncodedImages::read_file(std::int64_t example) const {
  std::vector<std::uint8_t> file = examples_->read(example);
  if (log_.is_on()) log_.note(example, file);
  return file;
}

void EncodedImages::decode_file(std::int64_t example, const ExamplePosition& position, std::uint8_t* pixels) const {
  const std::vector<std::uint8_t> file = read_file(example);
  const ImageSides target{static_cast<int>(description_.image()[2]), static_cast<int>(description_.image()[1])};
  CropBox box;
  const auto choose = [&](ImageSides sides) {
    box = frame(framing_, sides, target, position);
    return WantedPart{box, target};
  };
  const DecodedImage image = decode_image(file, static_cast<int>(description_.image()[0]), rules_, choose);
  if (!image.damaged_orientation.empty()) {
    const std::lock_guard lock(mutex_);
    damaged_orientations_.try_emplace(example, image.damaged_orientation);
  }
  const double scale = image.scale;
  resample(image, {box.left * scale, box.top * scale, box.width * scale, box.height * scale}, target.height,
           target.width, pixels);
}

void EncodedImages::decode(std::int64_t example, const ExamplePosition& position, std::uint8_t* pixels) const {
  try {
    decode_file(example, position, pixels);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    const std::string record = examples_->record(example);
    const std::string what = error.what();
    engine::fail(ErrorKind::kData, "{}{}{}", what.starts_with(record) ? "" : record + ": ", what,
                 skips_unreadable() ? "" : "; on_unreadable: SKIP goes on without it");
  }
}

void EncodedImages::read(std::int64_t example, const ExamplePosition& position,
                         std::span<const InputTensor> features) const {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(description_.image().elements()));
  decode(example, position, pixels.data());
  transform_.write(pixels.data(), position, features.front().as<float>().data());
}

std::vector<std::string> EncodedImages::warnings() const {
  const std::lock_guard lock(mutex_);
  if (damaged_orientations_.empty()) return {};
  const auto& [first, problem] = *damaged_orientations_.begin();
  const std::size_t count = damaged_orientations_.size();
  return {fmt::format("{}: {} a damaged EXIF orientation, which is ignored; the first: {}: {}", name_,
                      count == 1 ? "1 image has" : fmt::format("{} images have", count), examples_->record(first),
                      problem)};
}

namespace {

std::vector<std::string> texts_of(const std::map<std::size_t, std::exception_ptr>& failures) {
  std::vector<std::string> texts;
  for (const auto& [example, failure] : failures) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      texts.emplace_back(error.what());
    }
  }
  return texts;
}

}  // namespace

std::unique_ptr<ByteImages> EncodedImages::decode_all(engine::host::Pool& pool, std::vector<std::string>& warnings,
                                                      const SkipLimit& limit) const {
  ARBALEST_CHECK(!is_random());
  const auto examples = static_cast<std::size_t>(size());
  const auto pixels_per_image = static_cast<std::size_t>(description_.image().elements());
  std::vector<std::uint8_t> pixels(examples * pixels_per_image);
  std::vector<std::int32_t> labels(examples);
  std::atomic<std::int64_t> unreadable = 0;
  // The first failing examples are reported, so that the error is the same in every run.
  std::mutex mutex;
  std::map<std::size_t, std::exception_ptr> failures;
  log_.turn(true);
  pool.for_each(examples, [&](std::size_t i) {
    const auto example = static_cast<std::int64_t>(i);
    labels[i] = examples_->label(example);
    try {
      decode(example, {}, pixels.data() + i * pixels_per_image);
    } catch (...) {
      ++unreadable;
      const std::lock_guard lock(mutex);
      failures.emplace(i, std::current_exception());
      if (failures.size() > kNamedSkips) failures.erase(std::prev(failures.end()));
    }
  });
  log_.turn(false);
  const std::vector<ReadExample> read = log_.take();
  if (!failures.empty()) {
    try {
      std::rethrow_exception(failures.begin()->second);
    } catch (const Error& error) {
      if (!skips_unreadable() || error.kind() != ErrorKind::kData) throw;
      check_skipped(name_, unreadable, size(), limit, texts_of(failures));
      if (unreadable == size()) engine::fail(ErrorKind::kData, "{}: no image can be read: {}", name_, error.what());
      warnings.push_back(fmt::format("{}: {} of {} images cannot be read and are left out; the first: {}", name_,
                                     unreadable.load(), examples, error.what()));
    }
    return nullptr;
  }
  for (std::string& text : this->warnings()) warnings.push_back(std::move(text));
  auto images = std::make_unique<ByteImages>(name_, description_, transform_.normalization(), std::move(pixels),
                                             std::move(labels));
  images->keep_checksums(read);
  return images;
}

}  // namespace arbalest::dataflow
