#include "options/parameters/name_pattern.h"

#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

using Texts = std::vector<std::string>;

std::optional<Texts> match(const std::string& pattern, const std::string& name) {
  return NamePattern(pattern).match(name);
}

}  // namespace

TEST_CASE("a pattern matches whole names, and tells what its wildcards stand for") {
  CHECK(match("fc.weight", "fc.weight") == Texts{});
  CHECK(match("fc.weight", "fc.weights") == std::nullopt);
  CHECK(match("fc.weight", "xfc.weight") == std::nullopt);
  CHECK(match("", "") == Texts{});
  CHECK(match("", "a") == std::nullopt);
  CHECK(match("a", "") == std::nullopt);
  CHECK(match("*", "") == Texts{""});
  CHECK(match("*", "a.b") == Texts{"a.b"});
  CHECK(match("?", "") == std::nullopt);
  CHECK(match("layer?.*", "layer4.0.bn1") == Texts{"4", "0.bn1"});
  CHECK(match("*.gamma", "a.gamma.gamma") == Texts{"a.gamma"});
  CHECK(match("*.*", "a.b.c") == Texts{"a", "b.c"});  // the first takes as little as it can
  CHECK(match("**", "ab") == Texts{"", "ab"});
  CHECK(match("a*b?c*", "aXbYbZcW") == Texts{"XbY", "Z", "W"});
  CHECK(match("a*b?c*", "aXbYbZd") == std::nullopt);
  CHECK(match("fc[01].(x)", "fc[01].(x)") == Texts{});  // all other characters stand for themselves
  CHECK(match("fc.", "fcx") == std::nullopt);
}

TEST_CASE("a pattern with many stars takes no exponential time") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK(match(pattern + "b", std::string(5000, 'a')) == std::nullopt);
}

TEST_CASE("a pattern matches a parameter by its own name or by its layer's") {
  CHECK(NamePattern("fc").matches("fc.weight"));
  CHECK(NamePattern("fc").matches("fc"));
  CHECK_FALSE(NamePattern("f").matches("fc.weight"));
  CHECK_FALSE(NamePattern("layer1").matches("layer1.0.conv1.weight"));
  CHECK(NamePattern("layer1.*").matches("layer1.0.conv1.weight"));
  CHECK(NamePattern("*.bn?").matches("layer1.0.bn2.running_mean"));
  CHECK_FALSE(NamePattern("*.bn?").matches("layer1.0.conv2.weight"));
  CHECK(NamePattern("*.bias").matches("fc.bias"));
}

TEST_CASE("wildcards are filled in order") {
  CHECK(fill_wildcards("*", {"a.b"}) == "a.b");
  CHECK(fill_wildcards("layer?.*.weight", {"4", "x"}) == "layer4.x.weight");
  CHECK(fill_wildcards("fc.weight", {}) == "fc.weight");
  CHECK(NamePattern("a*b?c*").wildcards() == "*?*");
}

}  // namespace arbalest::jobs
