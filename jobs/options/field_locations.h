// Where in the job file each field was written.
#pragma once

#include <optional>
#include <string>

#include <google/protobuf/text_format.h>

#include "jobs/options/source_text.h"

namespace arbalest::jobs {

class FieldLocations {
 public:
  // The position of the field at `path` (from the message of type `root`), or else of the innermost field or message
  // around it that the text has. Nothing if the text has none.
  std::optional<Position> find(const std::string& path, const google::protobuf::Descriptor& root,
                               const SourceText& source) const;

  // For the parser to fill.
  google::protobuf::TextFormat::ParseInfoTree* tree() noexcept { return &tree_; }

 private:
  google::protobuf::TextFormat::ParseInfoTree tree_;
};

}  // namespace arbalest::jobs
