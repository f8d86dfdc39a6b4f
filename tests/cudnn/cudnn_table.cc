// cudnn_table DEVICE.json: prints cuDNN's answers for the zoo's convolutions on this GPU. The machine need not have it.
// Exit codes: 0 done, 2 usage, 3 the file is invalid, 4 skipped (cuDNN is missing or too old).
#include <cstdio>

#include "engine/base/error.h"
#include "tests/cudnn/convolution_table.h"
#include "tests/cudnn/device_properties.h"

int main(int argc, char** argv) {
  using namespace arbalest::tests::cudnn;
  if (argc != 2) {
    std::fputs("usage: cudnn_table DEVICE.json    (tests/cudnn/h100.json is an example)\n", stderr);
    return 2;
  }
  try {
    const Library library(ARBALEST_CUDNN_LIBRARY);
    const Descriptor device = read_device(library, argv[1]);
    std::fputs(to_text(ask_about_zoo(library, device), title_of(library, argv[1])).c_str(), stdout);
    return 0;
  } catch (const Unavailable& reason) {
    std::fprintf(stderr, "skipped: %s\n", reason.what());
    return 4;
  } catch (const arbalest::engine::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.kind() == arbalest::engine::ErrorKind::kInvalidJob ? 3 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
