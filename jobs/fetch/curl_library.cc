#include "jobs/fetch/curl_library.h"

#include <dlfcn.h>

#include "engine/error.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using engine::fail;

namespace {

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

}  // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary kLibrary = load();
  return kLibrary;
}

}  // namespace arbalest::jobs
