#include "engine/base/error.h"

namespace arbalest::engine {

void fail_check(const char* condition, const char* file, int line) {
  fail(ErrorKind::kInternal, "internal error: {}:{}: '{}' does not hold; please report this", file, line, condition);
}

}  // namespace arbalest::engine
