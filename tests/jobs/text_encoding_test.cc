// Text from outside is safe where it is shown.
#include "messages/text_encoding.h"

#include <string>

#include "tests/support/catch.h"

namespace {

using arbalest::jobs::printable;
using arbalest::jobs::safe_text;
using arbalest::jobs::TextFor;

constexpr TextFor kAll[] = {TextFor::kLine,     TextFor::kTerminal, TextFor::kHtml,
                            TextFor::kMarkdown, TextFor::kCsv,      TextFor::kPrometheus};

TEST_CASE("safe text: control characters never arrive, and letters of all languages do") {
  // The title of a terminal, a color, a bell, delete, and the same as one character of Unicode (U+009B).
  const std::string hostile = "cat\x1b]0;owned\x07\x1b[31m\x7f\r\u009b31m";
  for (const TextFor target : kAll) {
    const std::string safe = safe_text(hostile, target);
    for (const char c : safe) CHECK_FALSE(arbalest::jobs::is_control(c));
    CHECK(safe.find("\u009b") == std::string::npos);
    CHECK(safe_text("Zürich 猫 été", target) == "Zürich 猫 été");
  }
  CHECK(printable(hostile) == "cat?]0;owned??[31m???31m");
}

TEST_CASE("safe text: marks that turn the direction of text around, and separators of lines, never arrive") {
  for (const char* mark : {"\u202a", "\u202e", "\u2066", "\u2069", "\u2028", "\u2029", "\u0085"}) {
    for (const TextFor target : kAll) CHECK(safe_text(std::string("a") + mark + "b", target) == "a?b");
  }
  CHECK(printable("\u202f\u2065") == "\u202f\u2065");  // their neighbors are no controls
}

TEST_CASE("safe text: bytes that are not UTF-8") {
  const std::string latin = "caf\xe9";
  CHECK(printable(latin) == "caf?");
  CHECK(safe_text(latin, TextFor::kPrometheus) == "caf?");
  CHECK(printable(latin + ", 猫") == "caf?, 猫");  // the others stay
  CHECK(safe_text(latin, TextFor::kCsv) == "caf\ufffd");
}

TEST_CASE("safe text: lines stay where text has several") {
  CHECK(safe_text("a\n\tb", TextFor::kTerminal) == "a\n\tb");
  CHECK(safe_text("a\nb", TextFor::kHtml) == "a\nb");
  CHECK(safe_text("a\nb", TextFor::kMarkdown) == "a b");
  CHECK(safe_text("a\nb", TextFor::kLine) == "a?b");
  CHECK(safe_text("a\nb", TextFor::kCsv) == "\"a\nb\"");
  CHECK(safe_text("a\nb", TextFor::kPrometheus) == "a\\nb");
}

TEST_CASE("safe text: what has a meaning for the target is escaped") {
  CHECK(safe_text("<b a=\"1\">&", TextFor::kHtml) == "&lt;b a=&quot;1&quot;&gt;&amp;");
  CHECK(safe_text("a|b*`[x](y)\\<script>&", TextFor::kMarkdown) == "a\\|b\\*\\`\\[x](y)\\\\&lt;script>&amp;");
  CHECK(safe_text("a,\"b\"", TextFor::kCsv) == "\"a,\"\"b\"\"\"");
  CHECK(safe_text("plain", TextFor::kCsv) == "plain");
  CHECK(safe_text("a\"b\\", TextFor::kPrometheus) == "a\\\"b\\\\");
}

}  // namespace
