// Finds where the fields of a protobuf text stand, even if the text is malformed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <google/protobuf/descriptor.h>

#include "options/text/source_text.h"

namespace arbalest::jobs {

// An occurrence of a field. There is one per element of a list, and one for a list without elements.
struct FieldPlace {
  // Index in TextOutline::fields() of the message around the field; -1: the text itself.
  int around = -1;
  // null: the schema has no field of this name.
  const google::protobuf::FieldDescriptor* field = nullptr;
  int index = -1;  // index in a repeated field; -1: not an element
  Position name;
  Position list;   // the [ around the value, if is_in_list
  Position value;  // first token of the value; if the value is missing, the token in its place
  Position last;   // the last token of the value
  bool is_message = false;
  bool is_in_list = false;     // an element of [a, b]
  bool is_empty_list = false;  // []

  // The position that a message about the field points at.
  Position place() const { return is_in_list ? value : name; }
};

class TextOutline {
 public:
  // `root`: type of the text's message. Messages nested deeper than a job may be are skipped.
  TextOutline(const SourceText& source, const google::protobuf::Descriptor& root);

  // Fields in the order of the text.
  const std::vector<FieldPlace>& fields() const noexcept { return fields_; }

  // The position of the field at `path` ("model.layers[2].conv.filters"), or else of the innermost message around it
  // that the text contains; nothing if it contains none.
  std::optional<Position> find(const std::string& path) const;

  // The innermost field whose name, list, or value unless that is a message, is at `position`; null if there is none.
  const FieldPlace* at(Position position) const;

 private:
  std::vector<FieldPlace> fields_;
};

}  // namespace arbalest::jobs
