#include "fetch/http_transfer.h"

#include <dlfcn.h>

#include <array>
#include <exception>
#include <memory>

#include <curl/curl.h>
#include <fmt/format.h>

#include "engine/base/error.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

// libcurl, which the program loads only when it fetches: it brings 30 other libraries along.
struct CurlLibrary {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) set_option;
  decltype(&curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) info;
  decltype(&curl_easy_strerror) error_text;
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) fail(ErrorKind::kInternal, "libcurl has no function {}; install another version", name);
}

CurlLibrary load() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    fail(ErrorKind::kInternal,
         "libcurl cannot be loaded ({}); install it (Debian: apt-get install libcurl4), or fetch the files by other "
         "means and name their folder with --from",
         dlerror());
  }
  CurlLibrary curl{};
  find(library, "curl_global_init", curl.global_init);
  find(library, "curl_easy_init", curl.easy_init);
  find(library, "curl_easy_cleanup", curl.easy_cleanup);
  find(library, "curl_easy_setopt", curl.set_option);
  find(library, "curl_easy_perform", curl.perform);
  find(library, "curl_easy_getinfo", curl.info);
  find(library, "curl_easy_strerror", curl.error_text);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) fail(ErrorKind::kInternal, "libcurl cannot be started");
  return curl;
}

// Loads the library on the first call. Throws kInternal if the machine lacks it.
const CurlLibrary& curl_library() {
  static const CurlLibrary kLibrary = load();
  return kLibrary;
}

constexpr long kMostRedirects = 5;
constexpr long kConnectSeconds = 30;
constexpr long kSlowBytesPerSecond = 100;
constexpr long kSlowSeconds = 60;

struct Transfer {
  const HttpRequest& request;
  std::uint64_t at;  // bytes that are there
  bool is_too_long = false;
  std::exception_ptr failure = {};
};

// No exception may pass through libcurl.
extern "C" std::size_t take_bytes(char* bytes, std::size_t size, std::size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const std::size_t length = size * count;
  if (length > transfer.request.bytes - transfer.at) {
    transfer.is_too_long = true;
    return CURL_WRITEFUNC_ERROR;
  }
  try {
    transfer.request.put(std::as_bytes(std::span(bytes, length)));
  } catch (...) {
    transfer.failure = std::current_exception();
    return CURL_WRITEFUNC_ERROR;
  }
  transfer.at += length;
  return length;
}

extern "C" int look_for_stop(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<const Transfer*>(context);
  return transfer.request.stop && transfer.request.stop() ? 1 : 0;
}

template <typename Value>
void set(const CurlLibrary& curl, CURL* handle, CURLoption option, Value value) {
  const CURLcode code = curl.set_option(handle, option, value);
  if (code == CURLE_OK) return;
  fail(ErrorKind::kInternal, "libcurl does not take option {}: {}; install version 7.85 or later",
       static_cast<int>(option), curl.error_text(code));
}

std::string scheme_of(const std::string& url) { return url.substr(0, url.find(':')); }

void configure(const CurlLibrary& curl, CURL* handle, Transfer& transfer, char* problem) {
  const HttpRequest& request = transfer.request;
  const std::string scheme = scheme_of(request.url);
  set(curl, handle, CURLOPT_URL, request.url.c_str());
  set(curl, handle, CURLOPT_PROTOCOLS_STR, scheme.c_str());
  set(curl, handle, CURLOPT_REDIR_PROTOCOLS_STR, scheme.c_str());
  set(curl, handle, CURLOPT_FOLLOWLOCATION, 1L);
  set(curl, handle, CURLOPT_MAXREDIRS, kMostRedirects);
  set(curl, handle, CURLOPT_FAILONERROR, 1L);
  set(curl, handle, CURLOPT_NOSIGNAL, 1L);
  set(curl, handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(curl, handle, CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  set(curl, handle, CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  set(curl, handle, CURLOPT_USERAGENT, "arbalest");
  set(curl, handle, CURLOPT_ERRORBUFFER, problem);
  set(curl, handle, CURLOPT_WRITEFUNCTION, &take_bytes);
  set(curl, handle, CURLOPT_WRITEDATA, &transfer);
  set(curl, handle, CURLOPT_NOPROGRESS, 0L);
  set(curl, handle, CURLOPT_XFERINFOFUNCTION, &look_for_stop);
  set(curl, handle, CURLOPT_XFERINFODATA, &transfer);
  if (request.offset > 0) set(curl, handle, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(request.offset));
}

HttpOutcome outcome_of(CURLcode code, long status) {
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK: return HttpOutcome::kStopped;
    case CURLE_RANGE_ERROR: return HttpOutcome::kNotResumable;
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return HttpOutcome::kBrokenOff;
    case CURLE_HTTP_RETURNED_ERROR:
      if (status == 416) return HttpOutcome::kNotResumable;
      return status >= 500 || status == 429 ? HttpOutcome::kBrokenOff : HttpOutcome::kRefused;
    default: return HttpOutcome::kRefused;
  }
}

}  // namespace

std::string shown_url(const std::string& url) {
  const std::size_t begin = url.find("://");
  if (begin == std::string::npos) return url;
  const std::size_t path = url.find('/', begin + 3);
  const std::size_t host = url.rfind('@', path);
  if (host == std::string::npos || host < begin) return url;
  return url.substr(0, begin + 3) + url.substr(host + 1);
}

HttpResult get(const HttpRequest& request) {
  const CurlLibrary& curl = curl_library();
  const std::unique_ptr<CURL, decltype(curl.easy_cleanup)> handle(curl.easy_init(), curl.easy_cleanup);
  if (!handle) fail(ErrorKind::kOutOfMemory, "libcurl has no memory for a transfer");
  Transfer transfer{request, request.offset};
  std::array<char, CURL_ERROR_SIZE> problem{};
  configure(curl, handle.get(), transfer, problem.data());
  const CURLcode code = curl.perform(handle.get());
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  if (transfer.is_too_long) {
    return {HttpOutcome::kRefused, fmt::format("the server sends more than the {} bytes of the file", request.bytes)};
  }
  if (code == CURLE_OK && transfer.at < request.bytes) {
    return {HttpOutcome::kBrokenOff,
            fmt::format("the server ended the file after {} of {} bytes", transfer.at, request.bytes)};
  }
  if (code == CURLE_OK) return {HttpOutcome::kWhole};
  long status = 0;
  curl.info(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  return {outcome_of(code, status), problem[0] != '\0' ? problem.data() : curl.error_text(code)};
}

}  // namespace arbalest::jobs
