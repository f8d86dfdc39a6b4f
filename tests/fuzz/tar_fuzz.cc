// Input: an archive, raw or gzip. Only its known members may be written, with their lengths and checksums.
#include <fstream>
#include <set>

#include "fetch/tar_archive.h"
#include "saved_model/sha256.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  static const fuzz::InputDirectory directory;
  namespace fs = std::filesystem;
  const fs::path out = directory.path() / "out";
  fs::create_directory(out);
  directory.write("archive", std::span(data, size));
  // SHA-256 of "abc": FIPS 180-2, appendix B.
  const std::vector<jobs::ArchiveMember> members = {
      {"set/abc", "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"set/names.txt", "names.txt"}};
  const bool is_refused = fuzz::is_refused(
      {engine::ErrorKind::kData}, [&] { jobs::unpack(directory.path() / "archive", members, out, 1U << 20U); });
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory.path())) {
    names.insert(fs::relative(entry.path(), directory.path()).string());
  }
  const bool has_all = names.contains("out/abc") && names.contains("out/names.txt");
  if (!is_refused && !has_all) std::abort();
  for (const char* known : {"archive", "out", "out/abc", "out/names.txt"}) names.erase(known);
  if (!names.empty()) std::abort();
  if (fs::exists(out / "abc")) {
    std::ifstream file(out / "abc", std::ios::binary);
    if (std::string(std::istreambuf_iterator<char>(file), {}) != "abc") std::abort();
  }
  if (fs::exists(out / "names.txt") && fs::file_size(out / "names.txt") > jobs::kMostTextBytes) std::abort();
  fs::remove_all(out);
  return 0;
}
