#include "interchange/export/run_export.h"

#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "engine/base/error.h"
#include "interchange/export/onnx_export.h"
#include "options/sparse/graph_needed.h"
#include "report/output_file.h"
#include "saved_model/model_description.h"
#include "saved_model/safetensors.h"
#include "saved_model/sha256.h"
#include "train/weights/saved_description.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

using dataflow::NamedTensor;

namespace {

// A file, its hash and its size, written piece by piece.
class HashedFile final : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit HashedFile(const std::filesystem::path& path) : file_(open_output_file("--output", path)) {}

  // Protobuf calls this in destructors, too, so that no exception may leave it: rethrow() has it.
  bool Write(const void* buffer, int size) override {
    if (failure_) return false;
    try {
      put({static_cast<const std::byte*>(buffer), static_cast<std::size_t>(size)});
    } catch (...) {
      failure_ = std::current_exception();
    }
    return !failure_;
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  void put(std::span<const std::byte> bytes) {
    hash_.update(bytes);
    file_->write(bytes);
    bytes_ += static_cast<std::int64_t>(bytes.size());
  }
  void finish(ExportReport& report) {
    file_->commit();
    report.sha256 = hash_.finish();
    report.bytes = bytes_;
  }

 private:
  std::unique_ptr<AtomicFile> file_;
  Sha256 hash_;
  std::int64_t bytes_ = 0;
  std::exception_ptr failure_;
};

// The order of fields in the file is that of their numbers, always.
void write_onnx(const onnx::Model& model, HashedFile& file) {
  bool is_written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor adaptor(&file);
    {
      google::protobuf::io::CodedOutputStream stream(&adaptor);
      stream.SetSerializationDeterministic(true);
      is_written = model.SerializeToCodedStream(&stream);
    }
    is_written = adaptor.Flush() && is_written;
  }
  file.rethrow();
  ARBALEST_CHECK(is_written);
}

onnx::Model onnx_of(const JobOptions& job, const std::filesystem::path& path, std::vector<NamedTensor> tensors,
                    const Metadata& metadata, bool softmax) {
  OnnxOptions options{.name = job.name, .metadata = metadata, .softmax = softmax};
  options.metadata.erase("format");  // of the file that the weights came from
  try {
    return to_onnx(*job.graph, std::move(tensors), options);
  } catch (const engine::Error& error) {
    if (error.kind() != engine::ErrorKind::kCheckpoint) throw;
    throw engine::Error(error.kind(), fmt::format("'{}' does not fit the run's job: {}", path.string(), error.what()));
  }
}

}  // namespace

ExportReport export_model(const JobOptions& job, const std::filesystem::path& path, const std::string& model_sha256,
                          const ExportOptions& options) {
  require_graph(job, "arbalest export");
  const bool is_onnx = options.format == ExportFormat::kOnnx;
  if (options.softmax && !is_onnx) {
    engine::fail(engine::ErrorKind::kUsage, "--softmax is for --format onnx; a safetensors file holds no layers");
  }
  std::vector<NamedTensor> tensors = read_finite_model(path, model_sha256);
  SavedDescription saved = read_saved_description(job, path.string());
  const Metadata metadata = to_metadata(saved.description);
  ExportReport report;
  report.warnings = std::move(saved.warnings);
  if (is_onnx) {
    const onnx::Model model = onnx_of(job, path, std::move(tensors), metadata, options.softmax);
    report.tensors = model.graph().initializer_size();
    HashedFile file(options.output);
    write_onnx(model, file);
    file.finish(report);
  } else {
    report.tensors = static_cast<std::int64_t>(tensors.size());
    HashedFile file(options.output);
    put_safetensors(tensors, metadata, [&](std::span<const std::byte> bytes) { file.put(bytes); });
    file.finish(report);
  }
  return report;
}

}  // namespace arbalest::jobs
