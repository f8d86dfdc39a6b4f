// Where the fields of a protobuf text stand, whether the text is well formed or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "jobs/options/source_text.h"

namespace arbalest::jobs {

// A field as it is written; one for each element of a list, and one for a list without elements.
struct FieldPlace {
  int around = -1;  // number of the message around it in TextOutline::fields(); -1: the text itself
  const google::protobuf::FieldDescriptor* field = nullptr;  // null: the schema has none of this name
  int index = -1;                                            // in a repeated field; -1: of no element
  Position name;
  Position value;  // its first token; where the text has none, what stands there instead
  Position last;   // the last token of the value
  bool is_message = false;
  bool is_in_list = false;     // an element of [a, b]
  bool is_empty_list = false;  // []

  // What a message about the field points at.
  Position place() const { return is_in_list ? value : name; }
};

class TextOutline {
 public:
  // `root`: the message that the text is of. Messages that are nested deeper than a job may be are left out.
  TextOutline(const SourceText& source, const google::protobuf::Descriptor& root);

  // In the order of the text.
  const std::vector<FieldPlace>& fields() const noexcept { return fields_; }

  // The position of the field at `path` ("model.layers[2].conv.filters"), or else of the innermost message around it
  // that the text has. Nothing if the text has none.
  std::optional<Position> find(const std::string& path) const;

  // The innermost field whose name, or value if that is no message, is at `position`; null if there is none.
  const FieldPlace* at(Position position) const;

 private:
  std::vector<FieldPlace> fields_;
};

}  // namespace arbalest::jobs
