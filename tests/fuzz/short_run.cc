// A short run of a fuzz target without libFuzzer, for the builds with AddressSanitizer: every seed, and then seeds that
// are changed at random, always the same ones. It follows no coverage; `make fuzz` does.
//
//   short_run EXECUTIONS LARGEST FILE_OR_DIRECTORY...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> read_seeds(int count, char** names) {
  std::vector<fs::path> files;
  for (int i = 0; i < count; ++i) {
    if (!fs::is_directory(names[i])) files.emplace_back(names[i]);
    if (!fs::is_directory(names[i])) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(names[i])) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Bytes> seeds;
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

class Mutator {
 public:
  Mutator(std::vector<Bytes> seeds, std::size_t largest) : seeds_(std::move(seeds)), largest_(largest) {}

  // Returns a seed with one to eight changes.
  Bytes next() {
    Bytes bytes = seeds_[below(seeds_.size())];
    for (std::size_t changes = 1 + below(8); changes > 0; --changes) change(bytes);
    bytes.resize(std::min(bytes.size(), largest_));
    return bytes;
  }

 private:
  // These have the same results with every standard library.
  std::size_t below(std::size_t end) { return end == 0 ? 0 : numbers_() % end; }
  std::uint8_t unusual() {
    constexpr std::uint8_t kUnusual[] = {0x00, 0x01, 0x7F, 0x80, 0xFF, '"', '{', '}', '-', '9'};
    return below(2) == 0 ? kUnusual[below(std::size(kUnusual))] : static_cast<std::uint8_t>(numbers_());
  }

  void change(Bytes& bytes) {
    const std::size_t at = below(bytes.size());
    const auto position = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t length = std::min(1 + below(16), bytes.size() - at);
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 1:
        if (!bytes.empty()) bytes[at] = unusual();
        break;
      case 2: bytes.insert(position, 1 + below(8), unusual()); break;
      case 3: bytes.erase(position, position + static_cast<std::ptrdiff_t>(length)); break;
      case 4: bytes.resize(at); break;
      default: {  // a part of another seed
        const Bytes& other = seeds_[below(seeds_.size())];
        const std::size_t from = below(other.size());
        const std::size_t part = std::min(1 + below(64), other.size() - from);
        const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
        bytes.insert(position, begin, begin + static_cast<std::ptrdiff_t>(part));
      }
    }
  }

  std::vector<Bytes> seeds_;
  std::size_t largest_;
  std::mt19937_64 numbers_{1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s EXECUTIONS LARGEST FILE_OR_DIRECTORY...\n", argv[0]);
    return 2;
  }
  const std::vector<Bytes> seeds = read_seeds(argc - 3, argv + 3);
  if (seeds.empty()) {
    std::fprintf(stderr, "there are no seeds in %s\n", argv[3]);
    return 1;
  }
  for (const Bytes& seed : seeds) LLVMFuzzerTestOneInput(seed.data(), seed.size());
  Mutator mutator(seeds, std::stoul(argv[2]));
  const long executions = std::stol(argv[1]);
  for (long i = 0; i < executions; ++i) {
    const Bytes bytes = mutator.next();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu seeds and %ld changed ones, no finding\n", seeds.size(), executions);
  return 0;
}
