#include "scheduler/replicas/host_copies.h"

#include <utility>
#include <vector>

namespace arbalest::scheduler {

using dataflow::VectorPart;

dataflow::DeviceVector on_device(const Replicas& replicas, std::size_t pool, const float* vector) {
  learners::LearnerPool& of = replicas.pool(pool);
  return {&of.training_plan().parameters(), &of.device(), vector};
}

Tensors gather_parts(const Replicas& replicas, VectorPart part, const PoolVector& vector_of) {
  if (replicas.exchange() == nullptr) return {};
  std::vector<dataflow::DeviceVector> vectors;
  for (std::size_t p = 0; p < replicas.pools().size(); ++p) vectors.push_back(on_device(replicas, p, vector_of(p)));
  return dataflow::gather_parts(vectors, part, replicas.world());
}

Tensors whole_tensors(const Replicas& replicas, const PoolVector& vector_of, Tensors memory) {
  const Tensors parts = gather_parts(replicas, VectorPart::kAll, vector_of);
  return dataflow::whole_tensors(on_device(replicas, 0, vector_of(0)), VectorPart::kAll, parts, std::move(memory));
}

void to_device(const Replicas& replicas, std::size_t pool, std::span<const dataflow::NamedTensor> tensors,
               float* vector, VectorPart part) {
  learners::LearnerPool& of = replicas.pool(pool);
  of.training_plan().parameters().from_canonical(of.device(), tensors, vector, part);
}

}  // namespace arbalest::scheduler
