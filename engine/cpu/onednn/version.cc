#include "engine/cpu/onednn/version.h"

#include <fmt/format.h>
#include <dnnl.hpp>

namespace arbalest::engine::cpu {

namespace {

const char* threading(unsigned runtime) {
  switch (runtime) {
    case DNNL_RUNTIME_OMP: return "OpenMP";
    case DNNL_RUNTIME_TBB: return "oneTBB";
    case DNNL_RUNTIME_SEQ: return "sequential";
    default: return "other threads";
  }
}

}  // namespace

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("{}.{}.{} ({})", version->major, version->minor, version->patch, threading(version->cpu_runtime));
}

}  // namespace arbalest::engine::cpu
