#include "train/sparse/memory_advice.h"

#include <new>

#include "engine/base/error.h"

namespace arbalest::jobs {

void with_memory_advice(const JobOptions& job, const std::function<void()>& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    engine::fail(engine::ErrorKind::kOutOfMemory, "out of memory; use {}",
                 job.graph != nullptr
                     ? "a smaller model.zoo.matrix_factorization.width, or fewer users, items or ratings (data.ratings)"
                     : "fewer features (data.libsvm.features) or fewer rows");
  }
}

}  // namespace arbalest::jobs
