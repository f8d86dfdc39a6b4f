#include "jobs/options/field_locations.h"

#include <algorithm>

#include <google/protobuf/descriptor.h>

#include "jobs/options/field_path.h"

namespace arbalest::jobs {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

namespace {

// Where one element stands. A list [a, b] has one location, as its first element.
TextFormat::ParseLocation locate(const TextFormat::ParseInfoTree& tree, const FieldDescriptor* field, int index) {
  if (!field->is_repeated()) return tree.GetLocation(field, -1);
  const TextFormat::ParseLocation location = tree.GetLocation(field, std::max(index, 0));
  return location.line < 0 ? tree.GetLocation(field, 0) : location;
}

}  // namespace

std::optional<Position> FieldLocations::find(const std::string& path, const Descriptor& root,
                                             const SourceText& source) const {
  std::optional<Position> innermost;
  const TextFormat::ParseInfoTree* tree = &tree_;
  const Descriptor* type = &root;
  for (const FieldPathPart& part : parse_field_path(path)) {
    const FieldDescriptor* field = tree == nullptr || type == nullptr ? nullptr : type->FindFieldByName(part.name);
    if (field == nullptr) break;
    const TextFormat::ParseLocation location = locate(*tree, field, part.index);
    if (location.line < 0) break;
    innermost = source.from_protobuf(location.line, location.column);
    type = field->message_type();
    tree =
        type == nullptr ? nullptr : tree->GetTreeForNested(field, field->is_repeated() ? std::max(part.index, 0) : -1);
  }
  return innermost;
}

}  // namespace arbalest::jobs
