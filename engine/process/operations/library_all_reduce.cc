#include "engine/process/operations/library_all_reduce.h"

#include <algorithm>

#include "engine/base/error.h"

namespace arbalest::engine::process {

void LibraryAllReduce::start(Transport& transport, int) {
  ARBALEST_CHECK(open_ == 0);
  std::ranges::copy(values_, addends_.begin());
  constexpr std::size_t kPiece = kMaxMessageBytes / sizeof(float);
  for (std::size_t begin = 0; begin < addends_.size(); begin += kPiece) {
    const std::size_t size = std::min(kPiece, addends_.size() - begin);
    ++open_;
    transport.all_reduce_sum(std::span(addends_).subspan(begin, size), values_.data() + begin, {this, 0});
  }
}

}  // namespace arbalest::engine::process
