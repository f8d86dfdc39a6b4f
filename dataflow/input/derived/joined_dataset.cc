#include "dataflow/input/derived/joined_dataset.h"

#include <utility>

#include "dataflow/input/images/stored_images.h"
#include "engine/base/error.h"

namespace arbalest::dataflow {

namespace {

std::size_t host_bytes(const Dataset& data) {
  const std::optional<StoredBytes> stored = data.stored_bytes();
  return data.memory_bytes() + (stored ? stored->bytes() : 0);
}

class JoinedDataset final : public Dataset {
 public:
  JoinedDataset(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  const std::string& name() const noexcept override { return first_->name(); }
  const InputDescription& description() const noexcept override { return first_->description(); }
  std::int64_t size() const noexcept override { return first_->size() + second_->size(); }

  void read(std::int64_t example, const ExamplePosition& position,
            std::span<const InputTensor> features) const override {
    const std::int64_t behind = example - first_->size();
    behind < 0 ? first_->read(example, position, features) : second_->read(behind, position, features);
  }
  void read_label(std::int64_t example, const InputTensor& label) const override {
    const std::int64_t behind = example - first_->size();
    behind < 0 ? first_->read_label(example, label) : second_->read_label(behind, label);
  }
  bool skips_unreadable() const noexcept override { return first_->skips_unreadable() || second_->skips_unreadable(); }
  bool reads_files() const noexcept override { return first_->reads_files() || second_->reads_files(); }
  void begin_read_log() const override {
    first_->begin_read_log();
    second_->begin_read_log();
  }
  std::vector<ReadExample> take_read_log() const override {
    std::vector<ReadExample> all = first_->take_read_log();
    for (const ReadExample& read : second_->take_read_log()) {
      all.push_back({read.example + static_cast<std::uint32_t>(first_->size()), read.checksum});
    }
    return all;
  }
  std::string record(std::int64_t example) const override {
    const std::int64_t behind = example - first_->size();
    return behind < 0 ? first_->record(example) : second_->record(behind);
  }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all = first_->warnings();
    for (std::string& text : second_->warnings()) all.push_back(std::move(text));
    return all;
  }
  std::size_t memory_bytes() const noexcept override { return host_bytes(*first_) + host_bytes(*second_); }

 private:
  std::unique_ptr<Dataset> first_;
  std::unique_ptr<Dataset> second_;
};

}  // namespace

std::unique_ptr<Dataset> join(std::unique_ptr<Dataset> first, std::unique_ptr<Dataset> second,
                              const engine::host::MemoryBudget& budget) {
  ARBALEST_CHECK(first->description() == second->description());
  auto* images = dynamic_cast<ByteImages*>(first.get());
  const auto* more = dynamic_cast<const ByteImages*>(second.get());
  if (images == nullptr || more == nullptr) {
    return std::make_unique<JoinedDataset>(std::move(first), std::move(second));
  }
  budget.require(host_bytes(*first) + host_bytes(*second), second->name(), "use fewer examples, or more memory");
  images->append(*more);
  return first;
}

}  // namespace arbalest::dataflow
