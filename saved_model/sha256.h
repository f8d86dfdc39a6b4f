// SHA-256 of a stream of bytes (OpenSSL), and SHA-1, which formats of others ask for.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct evp_md_ctx_st;
struct evp_md_st;

namespace arbalest::jobs {

class Digest {
 public:
  void update(std::span<const std::byte> bytes);
  // Lower-case hexadecimal digits: 64 of SHA-256, 40 of SHA-1. Nothing may be added afterwards.
  std::string finish();

 protected:
  explicit Digest(const evp_md_st* kind);

 private:
  struct Release {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Release> context_;
};

class Sha256 final : public Digest {
 public:
  Sha256();
};

// Finds damage; it is no protection against forgery.
class Sha1 final : public Digest {
 public:
  Sha1();
};

// The SHA-256 of a file. Throws kData if it cannot be read.
std::string sha256_of(const std::filesystem::path& path);

}  // namespace arbalest::jobs
