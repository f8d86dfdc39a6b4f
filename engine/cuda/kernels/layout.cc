#include "engine/cuda/kernels/layout.h"

#include "engine/base/error.h"

namespace arbalest::engine::cuda {

namespace {

class CudaLayout final : public NativeLayout {
 public:
  explicit CudaLayout(Order native) : order(native) {}
  bool equals(const NativeLayout& other) const override {
    const auto* same_kind = dynamic_cast<const CudaLayout*>(&other);
    return same_kind != nullptr && same_kind->order == order;
  }
  std::vector<std::int64_t> numbers() const override { return {static_cast<std::int64_t>(order)}; }

  const Order order;
};

// Two orders with the same offset for every element count as one order.
bool orders_agree(const Shape& shape) { return shape[1] == 1 || (shape[2] == 1 && shape[3] == 1); }

}  // namespace

Layout make_layout(const Shape& shape, DType dtype, Order order) {
  if (shape.rank() != 4 || orders_agree(shape)) order = Order::kCanonical;
  return {shape, dtype, static_cast<std::size_t>(shape.elements()) * size_of(dtype),
          std::make_shared<CudaLayout>(order)};
}

Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) {
  for (const Order order : {Order::kCanonical, Order::kChannelsLast}) {
    if (numbers.size() == 1 && numbers[0] == static_cast<std::int64_t>(order)) return make_layout(shape, dtype, order);
  }
  fail(ErrorKind::kDevice, "these numbers describe no layout of a GPU");
}

Order order_of_convolutions(Precision precision) {
  return precision == Precision::kFloat32 ? Order::kCanonical : Order::kChannelsLast;
}

Order order_of(const Layout& layout) {
  const auto* native = dynamic_cast<const CudaLayout*>(layout.native());
  ARBALEST_CHECK(native != nullptr);
  return native->order;
}

bool is_bfloat16(const Layout& layout) {
  ARBALEST_CHECK(layout.dtype() != DType::kInt32);
  return layout.dtype() == DType::kBFloat16;
}

}  // namespace arbalest::engine::cuda
