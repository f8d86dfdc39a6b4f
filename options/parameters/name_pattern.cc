#include "options/parameters/name_pattern.h"

#include <algorithm>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace {

bool is_wildcard(char c) { return c == '*' || c == '?'; }

}  // namespace

std::string NamePattern::wildcards() const {
  std::string found;
  std::ranges::copy_if(text_, std::back_inserter(found), is_wildcard);
  return found;
}

// After a mismatch only the last '*' takes in another character. So the time is at most the product of both lengths.
std::optional<std::vector<std::string>> NamePattern::match(std::string_view name) const {
  struct Span {
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Span> spans;          // of the name, by wildcard
  std::optional<std::size_t> star;  // position of the last '*'
  std::size_t spans_to_star = 0;    // number of spans up to and including that '*'
  std::size_t p = 0;
  std::size_t n = 0;
  while (n < name.size()) {
    if (p < text_.size() && text_[p] == '*') {
      star = p++;
      spans.push_back({n, n});
      spans_to_star = spans.size();
    } else if (p < text_.size() && text_[p] == '?') {
      ++p;
      spans.push_back({n, n + 1});
      ++n;
    } else if (p < text_.size() && text_[p] == name[n]) {
      ++p;
      ++n;
    } else if (star.has_value()) {
      p = *star + 1;
      spans.resize(spans_to_star);
      n = ++spans.back().end;
    } else {
      return std::nullopt;
    }
  }
  for (; p < text_.size() && text_[p] == '*'; ++p) spans.push_back({n, n});
  if (p < text_.size()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Span& span : spans) texts.emplace_back(name.substr(span.begin, span.end - span.begin));
  return texts;
}

bool NamePattern::matches(std::string_view name) const {
  const std::string_view layer = layer_of(name);
  return match(name).has_value() || (!layer.empty() && match(layer).has_value());
}

std::string_view layer_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

std::string fill_wildcards(std::string_view pattern, const std::vector<std::string>& texts) {
  std::string filled;
  std::size_t next = 0;
  for (const char c : pattern) {
    if (!is_wildcard(c)) {
      filled += c;
      continue;
    }
    ARBALEST_CHECK(next < texts.size());
    filled += texts[next++];
  }
  ARBALEST_CHECK(next == texts.size());
  return filled;
}

}  // namespace arbalest::jobs
