#include "learners/batch_copy.h"

#include "engine/base/error.h"

namespace arbalest::learners {

void copy_batch(engine::Stream& stream, const dataflow::Plan& plan, const dataflow::Batch& batch, std::byte* arena) {
  ARBALEST_CHECK(batch.tensors.size() == plan.inputs().size());
  for (std::size_t t = 0; t < batch.tensors.size(); ++t) {
    const dataflow::InputTensor& tensor = batch.tensors[t];
    const dataflow::Plan::Input& input = plan.inputs()[t];
    const dataflow::TensorDescription& given = tensor.description();
    ARBALEST_CHECK(given.name == input.name && given.dtype == input.layout.dtype() &&
                   tensor.bytes().size() == input.layout.bytes());
    stream.copy(arena + input.offset, tensor.bytes().data(), input.layout.bytes(), input.name.c_str());
  }
}

}  // namespace arbalest::learners
