// cuDNN's backend interface, loaded at run time, for two reasons. The stand-in defines functions of the same names in
// the same program, and a machine without cuDNN can still start the tests.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace arbalest::tests::cudnn {

// cuDNN is missing, or too old to answer without a GPU.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A call of cuDNN failed. what() has the call and cuDNN's explanation.
class CallFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Library;

// A descriptor of the backend interface. The library must outlive it.
class Descriptor {
 public:
  Descriptor(const Library& library, cudnnBackendDescriptorType_t type);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  // These throw CallFailed.
  void set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, const std::string& text);
  void finalize();

  std::int64_t get_integer(cudnnBackendAttributeName_t name) const;
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;  // of an engine
  std::vector<cudnnBackendBehaviorNote_t> behavior_notes() const;    // of an engine
  Descriptor get_descriptor(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  // Returns all descriptors of the attribute.
  std::vector<Descriptor> get_descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;

 private:
  void set_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                  const void* values);
  std::int64_t get_values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t room,
                          void* values) const;

  const Library* library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

class Library {
 public:
  // Throws Unavailable if there is no such library, or if it is older than cuDNN 9.8.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // "9.19.0"
  const std::string& version() const { return version_; }

 private:
  friend class Descriptor;

  template <typename Function>
  void find(Function*& function, const char* name);
  void check(cudnnStatus_t status, const char* call) const;

  void* handle_ = nullptr;
  std::string path_;
  std::string version_;
  decltype(&cudnnGetErrorString) error_string_ = nullptr;
  decltype(&cudnnGetLastErrorString) last_error_ = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_ = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_ = nullptr;
  decltype(&cudnnBackendSetAttribute) set_ = nullptr;
  decltype(&cudnnBackendGetAttribute) get_ = nullptr;
  decltype(&cudnnBackendFinalize) finalize_ = nullptr;
};

}  // namespace arbalest::tests::cudnn
