// libcurl, which the program loads only when it fetches: it brings 30 other libraries along.
#pragma once

#include <curl/curl.h>

namespace arbalest::jobs {

struct CurlLibrary {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) set_option;
  decltype(&curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) info;
  decltype(&curl_easy_strerror) error_text;
};

// Loads the library on the first call. Throws kInternal if the machine lacks it.
const CurlLibrary& curl_library();

}  // namespace arbalest::jobs
