// Input: 's' and a manifest that gets a right checksum line, or another byte and a manifest as it is.
#include "checkpoint/manifest.h"
#include "checkpoint/xxh3.h"
#include "tests/fuzz/refused.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 's') {
    jobs::Xxh3 hash;
    hash.update(std::as_bytes(std::span(text)));
    text += "checksum: \"" + hash.finish() + "\"\n";
  }
  fuzz::is_refused({engine::ErrorKind::kCheckpoint}, [&] {
    const jobs::Manifest manifest = jobs::parse_manifest(text);
    const jobs::Manifest again = jobs::parse_manifest(jobs::print_manifest(manifest));
    if (again.batches != manifest.batches || again.files.size() != manifest.files.size()) std::abort();
    for (const jobs::ManifestEntry& entry : manifest.files) {
      if (!jobs::is_checkpoint_file_name(entry.name) || entry.name.find('/') != std::string::npos) std::abort();
    }
  });
  return 0;
}
