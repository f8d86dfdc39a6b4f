// Gets one file by HTTPS or HTTP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace arbalest::jobs {

struct HttpRequest {
  std::string url;                                      // https:// or http://
  std::uint64_t offset = 0;                             // bytes that are there already
  std::uint64_t bytes = 0;                              // length of the whole file: no more is taken
  std::function<void(std::span<const std::byte>)> put;  // gets the bytes from `offset` on; may throw
  std::function<bool()> stop;                           // asked several times a second
};

enum class HttpOutcome {
  kWhole,         // all bytes have come
  kBrokenOff,     // the server may send the rest when it is asked again
  kNotResumable,  // the server cannot go on at `offset`
  kRefused,       // asking again is of no use
  kStopped        // because of `stop`
};

struct HttpResult {
  HttpOutcome outcome = HttpOutcome::kRefused;
  std::string problem = {};  // what went wrong, for kBrokenOff and kRefused
};

// Follows up to five redirects, but to the scheme of `url` only. Certificates are verified. A server that sends less
// than 100 bytes a second for a minute counts as broken off. Rethrows what `put` throws; throws kInternal if the
// machine has no libcurl.
HttpResult get(const HttpRequest& request);

// `url` without a password, for messages.
std::string shown_url(const std::string& url);

}  // namespace arbalest::jobs
