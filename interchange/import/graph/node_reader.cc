#include "interchange/import/graph/node_reader.h"

#include <algorithm>

namespace arbalest::jobs {

namespace {

void check_type(const onnx::Attribute& attribute, bool has_value, const char* type) {
  if (!has_value) refuse("its attribute '{}' is not {}", attribute.name(), type);
}

}  // namespace

const onnx::Attribute* NodeReader::attribute(std::string_view name) {
  asked_.insert(std::string(name));
  const auto found = std::ranges::find(node_.attribute(), name, &onnx::Attribute::name);
  return found == node_.attribute().end() ? nullptr : &*found;
}

bool NodeReader::has(std::string_view name) const {
  return std::ranges::find(node_.attribute(), name, &onnx::Attribute::name) != node_.attribute().end();
}

std::int64_t NodeReader::integer(std::string_view name, std::int64_t unless_given) {
  const onnx::Attribute* found = attribute(name);
  if (found == nullptr) return unless_given;
  check_type(*found, found->has_i(), "an integer");
  return found->i();
}

float NodeReader::number(std::string_view name, float unless_given) {
  const onnx::Attribute* found = attribute(name);
  if (found == nullptr) return unless_given;
  check_type(*found, found->has_f(), "a number");
  return found->f();
}

std::string NodeReader::text(std::string_view name, const char* unless_given) {
  const onnx::Attribute* found = attribute(name);
  if (found == nullptr) return unless_given;
  check_type(*found, found->has_s(), "a text");
  return found->s();
}

std::vector<std::int64_t> NodeReader::integers(std::string_view name, const std::vector<std::int64_t>& unless_given) {
  const onnx::Attribute* found = attribute(name);
  if (found == nullptr) return unless_given;
  check_type(*found, !found->has_i() && !found->has_f() && !found->has_s(), "a list of integers");
  return {found->ints().begin(), found->ints().end()};
}

void NodeReader::require(std::string_view name, std::int64_t only) {
  const std::int64_t value = integer(name, only);
  if (value != only) refuse("its attribute '{}' is {}; only {} can be imported", name, value, only);
}

void NodeReader::check_all_asked() const {
  for (const onnx::Attribute& attribute : node_.attribute()) {
    if (!asked_.contains(attribute.name())) refuse("its attribute '{}' cannot be imported", attribute.name());
  }
}

}  // namespace arbalest::jobs
