#pragma once

#include <string>

namespace arbalest::engine::cpu {

// Version of the loaded oneDNN and its threading: "2.6.3 (OpenMP)".
std::string onednn_version();

}  // namespace arbalest::engine::cpu
