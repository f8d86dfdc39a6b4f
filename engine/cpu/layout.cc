#include "engine/cpu/layout.h"

#include <algorithm>

#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

struct TypePair {
  DType dtype;
  dnnl::memory::data_type native;
};

constexpr TypePair kTypes[] = {{DType::kFloat32, dnnl::memory::data_type::f32},
                               {DType::kInt32, dnnl::memory::data_type::s32},
                               {DType::kBFloat16, dnnl::memory::data_type::bf16}};

class DnnlLayout final : public NativeLayout {
 public:
  explicit DnnlLayout(const dnnl::memory::desc& native) : descriptor(native) {}
  bool equals(const NativeLayout& other) const override {
    const auto* same_kind = dynamic_cast<const DnnlLayout*>(&other);
    return same_kind != nullptr && same_kind->descriptor == descriptor;
  }

  const dnnl::memory::desc descriptor;
};

}  // namespace

dnnl::memory::desc descriptor(const Layout& layout) {
  const auto* native = dynamic_cast<const DnnlLayout*>(layout.native());
  ARBALEST_CHECK(native != nullptr);
  return native->descriptor;
}

Layout make_layout(const dnnl::memory::desc& descriptor) {
  Shape shape;
  for (const std::int64_t extent : descriptor.dims()) shape.append(extent);
  return make_layout(descriptor, shape);
}

Layout make_layout(const dnnl::memory::desc& descriptor, const Shape& shape) {
  const auto* type = std::ranges::find(kTypes, descriptor.data_type(), &TypePair::native);
  ARBALEST_CHECK(type != std::ranges::end(kTypes));
  return {shape, type->dtype, descriptor.get_size(), std::make_shared<DnnlLayout>(descriptor)};
}

dnnl::memory::dims dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

dnnl::memory::desc plain_descriptor(const Shape& shape, DType dtype) {
  static constexpr dnnl::memory::format_tag kPlain[] = {
      dnnl::memory::format_tag::undef, dnnl::memory::format_tag::a,    dnnl::memory::format_tag::ab,
      dnnl::memory::format_tag::abc,   dnnl::memory::format_tag::abcd, dnnl::memory::format_tag::abcde};
  return {dims(shape), std::ranges::find(kTypes, dtype, &TypePair::dtype)->native, kPlain[shape.rank()]};
}

}  // namespace arbalest::engine::cpu
