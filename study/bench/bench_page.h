// Writes a bench as a page.
#pragma once

#include <string>

#include "study/bench/bench.h"

namespace arbalest::jobs {

// One self-contained HTML page, with charts as inline SVG, readable on light and dark background.
std::string to_page(const BenchResult& result);
// Markdown for a page of results: its tables, and links to its charts. These are files in the same directory
// (study/bench/bench_report.h).
std::string to_markdown(const BenchResult& result);

// "Time to 99.00 % test accuracy", or "Test accuracy" if there is no target.
std::string bench_title(const BenchResult& result);
// "0.25, 0.50, 1.00"
std::string load_text(const LoadAverage& load);

}  // namespace arbalest::jobs
