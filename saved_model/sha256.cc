#include "saved_model/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include "engine/base/error.h"

namespace arbalest::jobs {

void Digest::Release::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Digest::Digest(const evp_md_st* kind) : context_(EVP_MD_CTX_new()) {
  ARBALEST_CHECK(context_ != nullptr);
  ARBALEST_CHECK(EVP_DigestInit_ex(context_.get(), kind, nullptr) == 1);
}

Sha256::Sha256() : Digest(EVP_sha256()) {}

Sha1::Sha1() : Digest(EVP_sha1()) {}

void Digest::update(std::span<const std::byte> bytes) {
  ARBALEST_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Digest::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  ARBALEST_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

std::string sha256_of(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) engine::fail(engine::ErrorKind::kData, "cannot read '{}': {}", path.string(), std::strerror(errno));
  Sha256 hash;
  std::vector<std::byte> piece(1U << 20U);
  for (;;) {
    const ssize_t count = read(file, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    const int error = errno;
    if (count > 0) hash.update(std::span(piece).first(static_cast<std::size_t>(count)));
    if (count > 0) continue;
    close(file);
    if (count == 0) return hash.finish();
    engine::fail(engine::ErrorKind::kData, "cannot read '{}': {}", path.string(), std::strerror(error));
  }
}

}  // namespace arbalest::jobs
