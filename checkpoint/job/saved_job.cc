#include "checkpoint/job/saved_job.h"

#include <google/protobuf/text_format.h>

#include "engine/base/error.h"

namespace arbalest::jobs {

v1::Job parse_saved_job(const std::string& text) {
  v1::Job job;
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(50);
  if (!parser.ParseFromString(text, &job)) {
    engine::fail(engine::ErrorKind::kCheckpoint,
                 "the checkpoint's job.txtpb cannot be read; it may be of a newer version of this program");
  }
  return job;
}

}  // namespace arbalest::jobs
