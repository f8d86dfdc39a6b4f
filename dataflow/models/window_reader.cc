#include "dataflow/models/window_reader.h"

#include <optional>

#include <fmt/format.h>

#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"

namespace arbalest::dataflow {

using google::protobuf::Message;

namespace {

struct Length {
  Length(const Message& message, std::string of)
      : name(std::move(of)),
        both(given(message, name)),
        height(given(message, name + "_height")),
        width(given(message, name + "_width")) {}

  static std::optional<int> given(const Message& message, const std::string& field) {
    const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
    if (descriptor == nullptr || !message.GetReflection()->HasField(message, descriptor)) return std::nullopt;
    return message.GetReflection()->GetInt32(message, descriptor);
  }

  bool is_given() const noexcept { return both || height || width; }
  // The field that gives the height, and the one that gives the width.
  std::string height_field() const { return name + (both ? "" : "_height"); }
  std::string width_field() const { return name + (both ? "" : "_width"); }
  engine::Extent2d extent(int otherwise) const {
    return {both.value_or(height.value_or(otherwise)), both.value_or(width.value_or(otherwise))};
  }

  std::string name;
  std::optional<int> both;
  std::optional<int> height;
  std::optional<int> width;
};

void fill_length(Message& message, const std::string& name) {
  if (!Length(message, name).is_given()) fill_field(message, name);
}

using Report = std::function<void(const std::string&, const std::string&)>;

void check_directions(const Length& length, const Report& report) {
  const std::string height = length.name + "_height";
  const std::string width = length.name + "_width";
  if (length.both && (length.height || length.width)) {
    report(length.name, fmt::format("{0} already sets both directions; remove {0} or {1}", length.name,
                                    length.height ? height : width));
  } else if (!length.both && length.height.has_value() != length.width.has_value()) {
    report(length.height ? height : width,
           fmt::format("{} is given without {}", length.height ? height : width, length.height ? width : height));
  }
}

void check_beside_same(const Length& length, const Report& report) {
  if (!length.is_given()) return;
  const std::string field = length.both || length.height ? length.height_field() : length.width_field();
  report(field, fmt::format("{} is given, but padding_mode: SAME chooses it; remove one of them", field));
}

// Reports extra padding that leaves fewer than no pixels below or to the right.
void check_extra_padding(const Length& padding, const Length& extra, const Report& report) {
  const auto check = [&](std::int64_t before, std::int64_t more, const std::string& field) {
    if (before < 0 || before + more >= 0) return;
    report(field, fmt::format("{} must be at least {}, which leaves no padding there, not {}", field, -before, more));
  };
  check(padding.extent(0).height, extra.extent(0).height, extra.height_field());
  check(padding.extent(0).width, extra.extent(0).width, extra.width_field());
}

}  // namespace

void fill_window(v1::Conv& conv) {
  fill_length(conv, "stride");
  if (conv.padding_mode() == v1::Padding::EXPLICIT) fill_length(conv, "padding");
  fill_length(conv, "dilation");
}

void fill_window(v1::Pool& pool) {
  if (pool.padding_mode() == v1::Padding::EXPLICIT) fill_length(pool, "padding");
  if (Length(pool, "stride").is_given()) return;
  // A wrong kernel is not used as a default, so that it is reported only once.
  const auto is_sound = [&](const char* field) { return field_problem(pool, field).empty(); };
  if (pool.has_kernel() && is_sound("kernel")) {
    pool.set_stride(pool.kernel());
  } else if (pool.has_kernel_height() && is_sound("kernel_height") && pool.has_kernel_width() &&
             is_sound("kernel_width")) {
    pool.set_stride_height(pool.kernel_height());
    pool.set_stride_width(pool.kernel_width());
  }
}

void check_window(const Message& message, v1::Padding::Mode mode, const Report& report) {
  const Length padding(message, "padding");
  const Length extra(message, "extra_padding");
  for (const char* name : {"kernel", "stride", "dilation"}) check_directions(Length(message, name), report);
  if (!Length(message, "kernel").is_given()) report("kernel", "kernel is missing");
  if (mode == v1::Padding::SAME) {
    check_beside_same(padding, report);
    check_beside_same(extra, report);
    return;
  }
  check_directions(padding, report);
  check_directions(extra, report);
  check_extra_padding(padding, extra, report);
}

engine::Window read_window(const Message& message) {
  engine::Window window;
  window.kernel = Length(message, "kernel").extent(0);
  window.stride = Length(message, "stride").extent(1);
  window.padding = Length(message, "padding").extent(0);
  window.extra_padding = Length(message, "extra_padding").extent(0);
  window.dilation = Length(message, "dilation").extent(1);
  return window;
}

}  // namespace arbalest::dataflow
