// Counts the edges between basic blocks for libFuzzer. GCC calls this function in each block of code that is compiled
// with -fsanitize-coverage=trace-pc; Clang's libFuzzer reads counters from this section.
#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t kCounters = std::size_t{1} << 16;
[[gnu::used, gnu::section("__libfuzzer_extra_counters")]] std::uint8_t counters[kCounters];
std::uintptr_t previous = 0;

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const std::uintptr_t mixed = place * 0x9E3779B97F4A7C15U >> 32U;
  ++counters[(mixed ^ previous) % kCounters];
  previous = mixed >> 1U;
}

// GCC also reports comparisons of floating-point numbers, for which libFuzzer has no function.
extern "C" void __sanitizer_cov_trace_cmpf(float /*left*/, float /*right*/) {}
extern "C" void __sanitizer_cov_trace_cmpd(double /*left*/, double /*right*/) {}
