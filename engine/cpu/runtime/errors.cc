#include "engine/cpu/runtime/errors.h"

#include <exception>
#include <new>

#include <dnnl_debug.h>
#include <dnnl.hpp>

#include "engine/base/error.h"

namespace arbalest::engine::cpu {

void rethrow_as_error() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const dnnl::error& error) {
    const bool out_of_memory = error.status == dnnl_out_of_memory;
    fail(out_of_memory ? ErrorKind::kOutOfMemory : ErrorKind::kDevice, "oneDNN: {} ({})", error.what(),
         dnnl_status2str(error.status));
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    fail(ErrorKind::kDevice, "{}", error.what());
  }
}

}  // namespace arbalest::engine::cpu
