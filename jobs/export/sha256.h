// SHA-256 of a stream of bytes (OpenSSL).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;

namespace arbalest::jobs {

class Sha256 {
 public:
  Sha256();

  void update(std::span<const std::byte> bytes);
  // 64 lower-case hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  struct Release {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Release> context_;
};

// The SHA-256 of a file. Throws kData if it cannot be read.
std::string sha256_of(const std::filesystem::path& path);

}  // namespace arbalest::jobs
