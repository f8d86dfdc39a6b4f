#include "engine/cpu/onednn/layout.h"

#include <algorithm>
#include <utility>

#include "engine/base/error.h"

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
  std::vector<std::int64_t> numbers() const override;

  const dnnl::memory::desc descriptor;
};

// Calls `take` for each number of a blocked tensor, after the number of axes and of blocks, in the order of
// DnnlLayout::numbers().
template <typename Tensor, typename Take>
void for_each_number(Tensor& data, const Take& take) {
  auto& blocking = data.format_desc.blocking;
  for (int axis = 0; axis < data.ndims; ++axis) {
    take(data.dims[axis]);
    take(data.padded_dims[axis]);
    take(blocking.strides[axis]);
  }
  for (int block = 0; block < blocking.inner_nblks; ++block) {
    take(blocking.inner_idxs[block]);
    take(blocking.inner_blks[block]);
  }
}

// Whether these numbers of axes and blocks are such that the others tell all of the layout.
bool is_blocked(const dnnl_memory_desc_t& data) {
  return data.format_kind == dnnl_blocked && data.offset0 == 0 && data.extra.flags == dnnl_memory_extra_flag_none;
}

std::vector<std::int64_t> DnnlLayout::numbers() const {
  const dnnl_memory_desc_t& data = descriptor.data;
  ARBALEST_CHECK(is_blocked(data));
  std::vector<std::int64_t> found = {data.ndims, data.format_desc.blocking.inner_nblks};
  for_each_number(data, [&](dnnl_dim_t number) { found.push_back(number); });
  return found;
}

}  // namespace

Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) {
  const auto require = [](bool fits) {
    if (!fits) fail(ErrorKind::kDevice, "these numbers describe no layout of a CPU");
  };
  require(numbers.size() >= 2 && numbers[0] > 0 && numbers[0] <= DNNL_MAX_NDIMS && numbers[1] >= 0 &&
          numbers[1] <= DNNL_MAX_NDIMS && std::cmp_equal(numbers.size(), 2 + 3 * numbers[0] + 2 * numbers[1]));
  dnnl_memory_desc_t data{};
  data.ndims = static_cast<int>(numbers[0]);
  data.data_type = static_cast<dnnl_data_type_t>(native_type(dtype));
  data.format_kind = dnnl_blocked;
  data.format_desc.blocking.inner_nblks = static_cast<int>(numbers[1]);
  std::size_t next = 2;
  std::int64_t elements = 1;
  for_each_number(data, [&](dnnl_dim_t& number) {
    number = numbers[next++];
    require(number >= 0);
  });
  for (int axis = 0; axis < data.ndims; ++axis) elements *= data.dims[axis];
  for (int block = 0; block < data.format_desc.blocking.inner_nblks; ++block) {
    require(data.format_desc.blocking.inner_idxs[block] < data.ndims);
  }
  require(elements == shape.elements());
  return make_layout(dnnl::memory::desc(data), shape);
}

dnnl::memory::desc descriptor(const Layout& layout) {
  const auto* native = dynamic_cast<const DnnlLayout*>(layout.native());
  ARBALEST_CHECK(native != nullptr);
  return native->descriptor;
}

dnnl::memory::data_type native_type(DType dtype) { return std::ranges::find(kTypes, dtype, &TypePair::dtype)->native; }

DType dtype_of(const dnnl::memory::desc& tensor) {
  const auto* type = std::ranges::find(kTypes, tensor.data_type(), &TypePair::native);
  ARBALEST_CHECK(type != std::ranges::end(kTypes));
  return type->dtype;
}

dnnl::memory::desc with_type(const dnnl::memory::desc& tensor, DType dtype) {
  dnnl::memory::desc other = tensor;
  other.data.data_type = static_cast<dnnl_data_type_t>(native_type(dtype));
  return other;
}

std::int64_t elements_of(const dnnl::memory::desc& tensor) {
  return static_cast<std::int64_t>(tensor.get_size() / size_of(dtype_of(tensor)));
}

Layout make_layout(const dnnl::memory::desc& descriptor) {
  Shape shape;
  for (const std::int64_t extent : descriptor.dims()) shape.append(extent);
  return make_layout(descriptor, shape);
}

Layout make_layout(const dnnl::memory::desc& descriptor, const Shape& shape) {
  return {shape, dtype_of(descriptor), descriptor.get_size(), std::make_shared<DnnlLayout>(descriptor)};
}

dnnl::memory::dims dims(const Shape& shape) { return {shape.begin(), shape.end()}; }

dnnl::memory::desc plain_descriptor(const Shape& shape, DType dtype) {
  static constexpr dnnl::memory::format_tag kPlain[] = {
      dnnl::memory::format_tag::undef, dnnl::memory::format_tag::a,    dnnl::memory::format_tag::ab,
      dnnl::memory::format_tag::abc,   dnnl::memory::format_tag::abcd, dnnl::memory::format_tag::abcde};
  return {dims(shape), native_type(dtype), kPlain[shape.rank()]};
}

std::optional<ImageStrides> image_strides(const dnnl::memory::desc& images) {
  const dnnl_blocking_desc_t& blocking = images.data.format_desc.blocking;
  const bool is_blocked = blocking.inner_nblks == 1 && blocking.inner_idxs[0] == 1;
  if (images.data.ndims != 4 || images.data.format_kind != dnnl_blocked || images.data.offset0 != 0 ||
      (blocking.inner_nblks > 0 && !is_blocked)) {
    return std::nullopt;
  }
  const dnnl_dim_t* strides = blocking.strides;
  const std::int64_t block = is_blocked ? blocking.inner_blks[0] : 1;
  return ImageStrides{block, strides[0], strides[1], is_blocked ? 1 : 0, strides[2], strides[3]};
}

std::optional<std::int64_t> units_of_paired_blocks(const dnnl::memory::desc& weights) {
  constexpr std::int64_t kFeatures = 16;
  const dnnl_memory_desc_t& data = weights.data;
  if (data.ndims != 2 || data.format_kind != dnnl_blocked || data.offset0 != 0) return std::nullopt;
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  const auto is_cut = [&](int i, int axis, std::int64_t size) {
    return blocking.inner_idxs[i] == axis && (size == 0 || blocking.inner_blks[i] == size);
  };
  if (blocking.inner_nblks != 3 || !is_cut(0, 1, kFeatures / 2) || !is_cut(1, 0, 0) || !is_cut(2, 1, 2)) {
    return std::nullopt;
  }
  const std::int64_t units = blocking.inner_blks[1];
  const std::int64_t blocks = (data.dims[1] + kFeatures - 1) / kFeatures;
  const bool is_dense = blocking.strides[1] == units * kFeatures && blocking.strides[0] == blocks * units * kFeatures;
  return is_dense ? std::optional(units) : std::nullopt;
}

std::optional<dnnl::memory::desc> with_extents(const dnnl::memory::desc& images, const dnnl::memory::dims& extents) {
  using Tag = dnnl::memory::format_tag;
  const auto rank = images.dims().size();
  std::vector<Tag> tags = {Tag::abcd, Tag::aBcd16b, Tag::aBcd8b, Tag::acdb, Tag::cdba};
  if (rank == 2) tags = {Tag::ab};
  if (rank != 4 && rank != 2) return std::nullopt;
  for (const Tag tag : tags) {
    if (dnnl::memory::desc(images.dims(), images.data_type(), tag) == images) {
      return dnnl::memory::desc(extents, images.data_type(), tag);
    }
  }
  return std::nullopt;
}

}  // namespace arbalest::engine::cpu
