// Formats numbers and signals for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string grouped(std::int64_t value);                         // 1,234,567
std::string counted(std::int64_t count, std::string_view noun);  // "1 epoch", "1,234 epochs", "2 mini-batches"
std::string duration(double seconds);                            // "0:07", "12:34", "1:02:03"
std::string bytes_text(std::int64_t bytes);                      // "1.50 MiB"

// 0.98765 -> "98.77 %": rounded to two decimals. Where the rounded number would reach `limit` and `fraction` does not,
// or the other way round, it gets more decimals: 0.99996 is "99.996 %", and only 1 is "100.00 %".
std::string percent(double fraction, double limit = 1.0);
// A target, with all its decimals, but at least two: "99.00 %", "98.765 %".
std::string target_percent(double target);

std::string signal_name(int signal);  // "SIGINT"

std::string loss_text(double loss);  // "0.2345", "2.112e+21", "nan"
// "1 epoch", "0.6 epochs", "0.004 epochs"
std::string epochs_text(double epochs);

// Returns the value, or NaN without its sign, which means nothing but would be printed by fmt.
double unsigned_nan(double value);

// "; did you mean 0.9?" for 90 where a fraction of at most `most` is expected; "" if `value` is no percentage of one. A
// value between 1 and 2 is rather a slip than a percentage.
std::string fraction_hint(double value, double most = 1.0);

// Columns of equal width under a header row. The first `left_columns` are aligned left, the others right.
std::string table(const std::vector<std::vector<std::string>>& rows, std::size_t left_columns);

}  // namespace arbalest::jobs
