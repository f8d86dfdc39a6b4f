#include "options/text/octal_numbers.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "messages/text.h"

namespace arbalest::jobs {

namespace {

// The digits at the begin of `text`.
std::string_view digits_of(std::string_view text) {
  return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
}

std::string message_for(std::string_view name, std::string_view digits, std::string_view sign) {
  std::uint64_t octal = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), octal, 8);
  ARBALEST_CHECK(error == std::errc() && end == digits.data() + digits.size());  // the parser has read it
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size() - 1);
  const std::string decimal(digits.substr(zeros));
  const std::string meant = fmt::format("{}{}", sign, octal);
  return fmt::format("{}: {}{} is octal {}, because of its leading zero; write {}{}{}", name, sign, digits, meant, sign,
                     decimal, meant == fmt::format("{}{}", sign, decimal) ? "" : " or " + meant);
}

}  // namespace

std::vector<OctalNumber> octal_numbers(const SourceText& source, const TextOutline& outline) {
  const std::string_view text = source.text();
  std::vector<OctalNumber> found;
  for (const FieldPlace& place : outline.fields()) {
    if (place.is_message || place.is_empty_list || place.field == nullptr) continue;
    const std::string_view digits = digits_of(text.substr(source.offset(place.last)));
    if (!has_leading_zero(digits)) continue;
    const bool is_negative = text.substr(source.offset(place.value)).starts_with('-');
    found.push_back({place.value, message_for(place.field->name(), digits, is_negative ? "-" : "")});
  }
  return found;
}

bool has_leading_zero(std::string_view digits) {
  return digits.size() > 1 && digits.front() == '0' && std::ranges::all_of(digits, is_digit);
}

}  // namespace arbalest::jobs
