#pragma once

#include <string>

namespace arbalest::engine::cpu {

// Of the library that is loaded, with its threading: "2.6.3 (OpenMP)".
std::string onednn_version();

}  // namespace arbalest::engine::cpu
