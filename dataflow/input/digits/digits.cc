#include "dataflow/input/digits/digits.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dataflow/input/batches/random_sequence.h"
#include "dataflow/input/digits/digit_renderer.h"
#include "dataflow/input/digits/digit_strokes.h"

namespace arbalest::dataflow {
namespace {

constexpr std::size_t kClasses = 10;
constexpr std::size_t kExamplesOfATask = 250;
static_assert(kDigitsTrainingExamples % kExamplesOfATask == 0 && kDigitsTestExamples % kExamplesOfATask == 0);
constexpr std::uint64_t kSeed = 0x6469676974730001;

using StylesOfDigits = std::vector<std::vector<DigitStyle>>;

StylesOfDigits all_styles() {
  StylesOfDigits styles;
  for (int digit = 0; digit < static_cast<int>(kClasses); ++digit) styles.push_back(digit_styles(digit));
  return styles;
}

}  // namespace

InputDescription digits_description() {
  return image_input({1, kDigitSide, kDigitSide}, static_cast<std::int64_t>(kClasses));
}

Normalization digits_normalization() { return {{0.1263F}, {0.2641F}}; }

std::unique_ptr<ByteImages> load_digits(Split split, const Normalization& normalization, engine::host::Pool& pool) {
  const bool train = split == Split::kTrain;
  const auto examples = static_cast<std::size_t>(train ? kDigitsTrainingExamples : kDigitsTestExamples);
  const std::uint64_t stream = train ? 0 : 1;
  const StylesOfDigits styles = all_styles();
  std::vector<std::uint8_t> pixels(examples * kDigitPixels);
  std::vector<std::int32_t> labels(examples);
  pool.for_each(examples / kExamplesOfATask, [&](std::size_t task) {
    for (std::size_t example = task * kExamplesOfATask; example < (task + 1) * kExamplesOfATask; ++example) {
      RandomSequence random(kSeed, stream, example);
      const std::size_t digit = example % kClasses;
      const DigitStyle& style = styles[digit][random.below(styles[digit].size())];
      labels[example] = static_cast<std::int32_t>(digit);
      render_digit(style, random,
                   std::span<std::uint8_t, kDigitPixels>(pixels.data() + example * kDigitPixels, kDigitPixels));
    }
  });
  return std::make_unique<ByteImages>(train ? "digits train" : "digits test", digits_description(), normalization,
                                      std::move(pixels), std::move(labels));
}

}  // namespace arbalest::dataflow
