// A bench as a page: one file that needs no other, with charts as inline SVG, readable on light and on dark ground.
#pragma once

#include <string>

#include "jobs/study/bench.h"

namespace arbalest::jobs {

std::string to_page(const BenchResult& result);

}  // namespace arbalest::jobs
