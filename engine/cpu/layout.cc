#include "engine/cpu/layout.h"

#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

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
  ARBALEST_CHECK(descriptor.data_type() == dnnl::memory::data_type::f32 ||
                 descriptor.data_type() == dnnl::memory::data_type::s32);
  const DType dtype = descriptor.data_type() == dnnl::memory::data_type::f32 ? DType::kFloat32 : DType::kInt32;
  return {shape, dtype, descriptor.get_size(), std::make_shared<DnnlLayout>(descriptor)};
}

dnnl::memory::dims dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

dnnl::memory::desc plain_descriptor(const Shape& shape, DType dtype) {
  static constexpr dnnl::memory::format_tag kPlain[] = {
      dnnl::memory::format_tag::undef, dnnl::memory::format_tag::a,    dnnl::memory::format_tag::ab,
      dnnl::memory::format_tag::abc,   dnnl::memory::format_tag::abcd, dnnl::memory::format_tag::abcde};
  const auto type = dtype == DType::kFloat32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::s32;
  return {dims(shape), type, kPlain[shape.rank()]};
}

}  // namespace arbalest::engine::cpu
