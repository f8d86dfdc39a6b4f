// A selection from a source of encoded examples. Several datasets can share the source.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "dataflow/input/images/encoded_images.h"

namespace arbalest::dataflow {

class SelectedExamples final : public EncodedExamples {
 public:
  // `selected`: numbers of examples in `source`.
  SelectedExamples(std::shared_ptr<const EncodedExamples> source, std::vector<std::int64_t> selected)
      : source_(std::move(source)), selected_(std::move(selected)) {}

  std::int64_t size() const noexcept override { return std::ssize(selected_); }
  std::int32_t label(std::int64_t example) const override { return source_->label(at(example)); }
  std::vector<std::uint8_t> read(std::int64_t example) const override { return source_->read(at(example)); }
  std::string record(std::int64_t example) const override { return source_->record(at(example)); }

 private:
  std::int64_t at(std::int64_t example) const { return selected_.at(static_cast<std::size_t>(example)); }

  std::shared_ptr<const EncodedExamples> source_;
  std::vector<std::int64_t> selected_;
};

}  // namespace arbalest::dataflow
