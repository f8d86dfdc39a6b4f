// Reads speeds of links and processors as people write them: "12GB/s", "40Gbit/s", "5us", "10TFLOP/s".
#pragma once

#include <string_view>

namespace arbalest::jobs {

struct Link {
  double bytes_per_second = 0.0;  // in each direction
  double latency_seconds = 0.0;   // of a message, beside its bytes
};

// These throw kUsage, which names the option, what is wrong and what is right.
//   option: "--links"
Link parse_link(std::string_view option, std::string_view text);             // "12GB/s,5us"
double parse_compute_speed(std::string_view option, std::string_view text);  // "10TFLOP/s", in FLOP/s

}  // namespace arbalest::jobs
