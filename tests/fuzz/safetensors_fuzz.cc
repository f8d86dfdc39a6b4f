// Input: a safetensors file.
#include <cstring>

#include "saved_model/safetensors.h"
#include "tests/fuzz/refused.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  const auto read_from = [](std::span<const std::uint8_t> bytes) {
    return jobs::parse_safetensors(bytes.size(), [at = std::size_t{0}, bytes](std::span<std::byte> out) mutable {
      if (out.size() > bytes.size() - at) std::abort();  // more than the file has
      if (!out.empty()) std::memcpy(out.data(), bytes.data() + at, out.size());
      at += out.size();
    });
  };
  fuzz::is_refused({engine::ErrorKind::kCheckpoint}, [&] {
    const std::vector<dataflow::NamedTensor> tensors = read_from(std::span(data, size));
    std::vector<std::uint8_t> written;
    jobs::put_safetensors(tensors, {}, [&](std::span<const std::byte> bytes) {
      const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
      written.insert(written.end(), begin, begin + bytes.size());
    });
    const std::vector<dataflow::NamedTensor> again = read_from(written);
    if (again.size() != tensors.size()) std::abort();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool is_same = again[i].name == tensors[i].name && again[i].shape == tensors[i].shape &&
                           again[i].values.size() == tensors[i].values.size();
      if (!is_same) std::abort();
    }
  });
  return 0;
}
