#include "arbalest/error.h"

#include "api/throwing.h"
#include "messages/exit_codes.h"
#include "messages/failure.h"

namespace arbalest {

namespace codes = jobs::exit_codes;

static_assert(static_cast<int>(ErrorKind::kInternal) == codes::kInternalError);
static_assert(static_cast<int>(ErrorKind::kUsage) == codes::kUsageError);
static_assert(static_cast<int>(ErrorKind::kInvalidJob) == codes::kJobInvalid);
static_assert(static_cast<int>(ErrorKind::kData) == codes::kDataMissing);
static_assert(static_cast<int>(ErrorKind::kCheckpoint) == codes::kCheckpointUnusable);
static_assert(static_cast<int>(ErrorKind::kOutOfMemory) == codes::kOutOfMemory);
static_assert(static_cast<int>(ErrorKind::kDiverged) == codes::kDiverged);
static_assert(static_cast<int>(ErrorKind::kPeer) == codes::kPeerFailed);
static_assert(static_cast<int>(ErrorKind::kDevice) == codes::kDeviceFailed);

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
Error::~Error() = default;

Error public_error(const std::exception& error) {
  const engine::Error known = jobs::as_error(error);
  return {static_cast<ErrorKind>(codes::exit_code(known.kind())), known.what()};
}

}  // namespace arbalest
