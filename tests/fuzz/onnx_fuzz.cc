// Input: an ONNX file, beside which there is a file of external data.
#include <set>
#include <string>

#include "interchange/import/onnx_file.h"
#include "interchange/import/onnx_import.h"
#include "tests/fuzz/input_directory.h"
#include "tests/fuzz/refused.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace arbalest;
  static const fuzz::InputDirectory directory;
  static const bool is_written = (directory.write("data", std::string(64, 'd')), true);
  constexpr std::size_t kMostComputed = std::size_t{1} << 16U;  // so that an execution stays short
  // The name of the model's file counts only for the place of its external data.
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fuzz::is_refused({engine::ErrorKind::kCheckpoint, engine::ErrorKind::kInvalidJob}, [&] {
    const jobs::ImportedModel model =
        jobs::import_onnx(jobs::parse_onnx(bytes, directory.path() / "data"), kMostComputed);
    std::set<std::string> names;
    for (const v1::Layer& layer : model.layers) {
      if (layer.name().empty() || !names.insert(layer.name()).second) std::abort();
    }
    for (const dataflow::NamedTensor& tensor : model.weights) {
      const std::string layer = tensor.name.substr(0, tensor.name.rfind('.'));
      if (!names.contains(layer)) std::abort();
      if (static_cast<std::int64_t>(tensor.values.size()) != tensor.shape.elements()) std::abort();
    }
  });
  return is_written ? 0 : 1;
}
