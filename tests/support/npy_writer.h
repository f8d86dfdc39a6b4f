// Makes small .npy files in memory, valid or with an error that the test chooses.
#pragma once

#include <string>
#include <vector>

namespace arbalest::tests {

// A .npy file of version 1 with this dictionary as its header.
inline std::string npy_file(std::string header, const std::string& content) {
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY\x01";
  file += '\0';
  file += static_cast<char>(header.size() & 0xFFU);
  file += static_cast<char>(header.size() >> 8U);
  return file + header + content;
}

inline std::string npy(const std::string& type, const std::string& shape, const std::string& content) {
  return npy_file("{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }", content);
}

// Returns the bytes of the numbers in memory order.
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace arbalest::tests
