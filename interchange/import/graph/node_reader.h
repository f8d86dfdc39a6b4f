// The attributes of an ONNX node. A node with an attribute that nobody has asked for is refused, so that no option is
// ignored.
#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "onnx/model.pb.h"

namespace arbalest::jobs {

// Why a node cannot be imported. The message does not name the node.
class NodeRefused final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw NodeRefused(fmt::format(format, std::forward<Args>(args)...));
}

class NodeReader {
 public:
  explicit NodeReader(const onnx::Node& node) : node_(node) {}

  const onnx::Node& node() const noexcept { return node_; }
  const std::string& kind() const noexcept { return node_.op_type(); }

  // These throw NodeRefused if the attribute has another type.
  std::int64_t integer(std::string_view name, std::int64_t unless_given);
  float number(std::string_view name, float unless_given);
  std::string text(std::string_view name, const char* unless_given);
  std::vector<std::int64_t> integers(std::string_view name, const std::vector<std::int64_t>& unless_given);
  bool has(std::string_view name) const;
  const onnx::Attribute* attribute(std::string_view name);  // null if it is not given

  // Accepts any value of an attribute that has no effect on inference.
  void ignore(std::string_view name) { asked_.insert(std::string(name)); }
  // Refuses all values of an attribute but `only`, which is also its default.
  void require(std::string_view name, std::int64_t only);

  // Throws NodeRefused if there is an attribute that was not asked for.
  void check_all_asked() const;

 private:
  const onnx::Node& node_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace arbalest::jobs
