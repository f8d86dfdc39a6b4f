// A message between the processes of a run in asynchronous SGD: a header, and numbers behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace arbalest::sma {

enum class MessageKind : std::uint32_t {
  kPull = 1,  // a learner asks for the weights of the receiver's shard
  kWeights,   // the answer: the shard's weights
  kPush,      // a learner's gradient of the receiver's shard
  kDrained    // the sender's learners are idle, and what they have pushed was sent before
};

struct MessageHeader {
  MessageKind kind = MessageKind::kPull;
  std::uint32_t learner = 0;     // number over all processes
  float learning_rate = 0.0F;    // of a push
  float gradient_scale = 1.0F;   // of a push: factor of the gradient, from clipping
  std::uint64_t mini_batch = 0;  // of a push: its last one
};

// Owns header and numbers as one string of bytes, which processes send as it is.
class ShardMessage {
 public:
  ShardMessage() = default;
  explicit ShardMessage(const MessageHeader& header, std::size_t numbers = 0)
      : bytes_(sizeof header + numbers * sizeof(float), '\0') {
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  // Takes over what another process has sent.
  explicit ShardMessage(std::string bytes) : bytes_(std::move(bytes)) {}

  MessageHeader header() const {
    MessageHeader header;
    std::memcpy(&header, bytes_.data(), sizeof header);
    return header;
  }
  std::span<float> elements() { return {reinterpret_cast<float*>(bytes_.data() + sizeof(MessageHeader)), count()}; }
  std::span<const float> elements() const {
    return {reinterpret_cast<const float*>(bytes_.data() + sizeof(MessageHeader)), count()};
  }
  std::string take_bytes() { return std::move(bytes_); }

 private:
  std::size_t count() const { return (bytes_.size() - sizeof(MessageHeader)) / sizeof(float); }

  std::string bytes_;
};

}  // namespace arbalest::sma
