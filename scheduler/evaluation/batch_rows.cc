#include "scheduler/evaluation/batch_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/process/all_gather.h"

namespace arbalest::scheduler {

namespace {

std::uint64_t number_of(const char* entry) {
  std::uint64_t number = 0;
  std::memcpy(&number, entry, sizeof number);
  return number;
}

}  // namespace

BatchRows::BatchRows(engine::process::World& world, std::size_t row_bytes, std::function<void(Row)> take)
    : world_(world), row_bytes_(row_bytes), take_(std::move(take)) {}

void BatchRows::add(std::uint64_t number, Row row) {
  ARBALEST_CHECK(row.size() == row_bytes_);
  if (world_.size() == 1) return take_(row);
  stored_.append(reinterpret_cast<const char*>(&number), sizeof number);
  stored_.append(reinterpret_cast<const char*>(row.data()), row.size());
}

void BatchRows::finish() {
  if (world_.size() == 1) return;
  const std::vector<std::string> parts = engine::process::all_gather(world_, std::exchange(stored_, {}));
  const std::size_t entry_bytes = sizeof(std::uint64_t) + row_bytes_;
  std::vector<const char*> entries;
  for (const std::string& part : parts) {
    for (std::size_t begin = 0; begin < part.size(); begin += entry_bytes) entries.push_back(part.data() + begin);
  }
  std::ranges::sort(entries, {}, number_of);
  for (const char* entry : entries) take_(std::as_bytes(std::span(entry + sizeof(std::uint64_t), row_bytes_)));
}

}  // namespace arbalest::scheduler
