#include "tests/cudnn/library.h"

#include <dlfcn.h>

#include <array>
#include <utility>

#include <fmt/format.h>

namespace arbalest::tests::cudnn {

namespace {

constexpr std::size_t kOldest = 90800;  // 9.8 is the first version that accepts device properties as JSON

std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

Library::Library(const std::string& path) : path_(path) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw Unavailable(fmt::format("cuDNN cannot be loaded: {}", dlerror()));
  try {
    decltype(&cudnnGetVersion) get_version = nullptr;
    find(get_version, "cudnnGetVersion");
    version_ = version_text(get_version());
    if (get_version() < kOldest) {
      throw Unavailable(fmt::format("{} is cuDNN {}, which answers no question without a GPU; install {} or newer",
                                    path, version_, version_text(kOldest)));
    }
    find(error_string_, "cudnnGetErrorString");
    find(last_error_, "cudnnGetLastErrorString");
    find(create_, "cudnnBackendCreateDescriptor");
    find(destroy_, "cudnnBackendDestroyDescriptor");
    find(set_, "cudnnBackendSetAttribute");
    find(get_, "cudnnBackendGetAttribute");
    find(finalize_, "cudnnBackendFinalize");
  } catch (const Unavailable&) {
    dlclose(handle_);
    throw;
  }
}

Library::~Library() { dlclose(handle_); }

template <typename Function>
void Library::find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(handle_, name));
  if (function == nullptr) throw Unavailable(fmt::format("{} has no {}; is it cuDNN 9?", path_, name));
}

void Library::check(cudnnStatus_t status, const char* call) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 4096> explanation{};
  last_error_(explanation.data(), explanation.size());
  throw CallFailed(fmt::format("{}: {} ({})", call, error_string_(status), explanation.data()));
}

Descriptor::Descriptor(const Library& library, cudnnBackendDescriptorType_t type) : library_(&library) {
  library.check(library.create_(type, &handle_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) library_->destroy_(handle_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Descriptor::set_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                            const void* values) {
  library_->check(library_->set_(handle_, name, type, count, values), "cudnnBackendSetAttribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
  set_values(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}
void Descriptor::set(cudnnBackendAttributeName_t name, float value) { set_values(name, CUDNN_TYPE_FLOAT, 1, &value); }
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set_values(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
  set_values(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
  set_values(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  set_values(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
}
void Descriptor::set(cudnnBackendAttributeName_t name, const std::string& text) {
  set_values(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), text.data());
}

void Descriptor::finalize() { library_->check(library_->finalize_(handle_), "cudnnBackendFinalize"); }

std::int64_t Descriptor::get_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                    std::int64_t room, void* values) const {
  std::int64_t count = 0;
  library_->check(library_->get_(handle_, name, type, room, &count, values), "cudnnBackendGetAttribute");
  return count;
}

std::int64_t Descriptor::get_integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  get_values(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::vector<cudnnBackendNumericalNote_t> Descriptor::numerical_notes() const {
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const std::int64_t count = get_values(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        static_cast<std::int64_t>(notes.size()), notes.data());
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

std::vector<cudnnBackendBehaviorNote_t> Descriptor::behavior_notes() const {
  std::vector<cudnnBackendBehaviorNote_t> notes(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const std::int64_t count = get_values(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                        static_cast<std::int64_t>(notes.size()), notes.data());
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

Descriptor Descriptor::get_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  Descriptor found(*library_, type);
  get_values(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found.handle_);
  return found;
}

std::vector<Descriptor> Descriptor::get_descriptors(cudnnBackendAttributeName_t name,
                                                    cudnnBackendDescriptorType_t type) const {
  const std::int64_t room = get_values(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < room; ++i) handles.push_back(found.emplace_back(*library_, type).handle_);
  const std::int64_t count = get_values(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, room, handles.data());
  found.erase(found.begin() + count, found.end());
  return found;
}

}  // namespace arbalest::tests::cudnn
