// Includes Catch2, version 2 (Debian 12) or 3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
inline auto ContainsSubstring(const std::string& text) { return Catch::Contains(text); }
#if defined(CATCH_CONFIG_EXTERNAL_INTERFACES)
namespace Catch {
using EventListenerBase = TestEventListenerBase;
}
#endif
#endif
