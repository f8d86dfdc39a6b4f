#include "engine/process/module_transport.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <system_error>

#include "engine/base/error.h"
#include "engine/process/mpi/module.h"

namespace arbalest::engine::process {

namespace {

namespace fs = std::filesystem;

using Module = ArbalestMpiModule;

std::string places(const std::vector<fs::path>& directories) {
  std::string text;
  for (const fs::path& directory : directories) text += (text.empty() ? "" : " and in ") + directory.string();
  return text;
}

// The library stays loaded: MPI leaves threads and exit handlers behind.
const Module& load_module(const Launch& launch, const std::vector<fs::path>& directories) {
  for (const fs::path& directory : directories) {
    const fs::path file = directory / kModuleFile;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) continue;
    // RTLD_GLOBAL: plug-ins of some MPI libraries look for the library's functions among the global ones.
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      fail(ErrorKind::kUsage,
           "this process was started by {}, but the MPI module cannot be loaded: {}. Install the MPI library that it "
           "was built with, or build Arbalest on this machine",
           launch.launcher, dlerror());
    }
    const auto function = reinterpret_cast<decltype(&arbalest_mpi_module)>(dlsym(library, ARBALEST_MPI_MODULE_NAME));
    const Module* module = function == nullptr ? nullptr : function();
    if (module == nullptr || module->version != ARBALEST_MPI_MODULE_VERSION) {
      fail(ErrorKind::kUsage, "{} is of another version of Arbalest; install the program and the module together",
           file.string());
    }
    return *module;
  }
  fail(ErrorKind::kUsage,
       "this process was started by {} as rank {}, but Arbalest was built without MPI: there is no {} in {}. Install "
       "libopenmpi-dev (or libmpich-dev) and build again, or start a single process without the launcher",
       launch.launcher, launch.rank, kModuleFile, places(directories));
}

class ModuleTransport final : public Transport {
 public:
  ModuleTransport(const Launch& launch, const Module& module) : module_(module), self_(module.create()) {
    if (self_ == nullptr) fail(ErrorKind::kOutOfMemory, "out of memory");
    check(module_.open(self_, &world_));
    if (launch.size != 0 && launch.size != world_.size) {
      fail(ErrorKind::kUsage,
           "{} has started {} processes, but MPI ({}) knows of {}. The program was built with another MPI library than "
           "the one that has launched it, or srun runs without --mpi=pmix (Open MPI) or --mpi=pmi2 (MPICH). Use the "
           "launcher of {}, or build Arbalest with the launcher's library",
           launch.launcher, launch.size, module_.library, world_.size, module_.library);
    }
    for (int rank = 0; rank < world_.size; ++rank) hosts_.emplace_back(module_.host(self_, rank));
  }
  // After an error MPI cannot be finalized; then the module's memory stays until the end of the process.
  ~ModuleTransport() override {
    if (is_closed_) module_.destroy(self_);
  }
  ModuleTransport(const ModuleTransport&) = delete;
  ModuleTransport& operator=(const ModuleTransport&) = delete;

  int rank() const noexcept override { return world_.rank; }
  int size() const noexcept override { return world_.size; }
  int local_rank() const noexcept override { return world_.local_rank; }
  int local_size() const noexcept override { return world_.local_size; }
  const std::string& host(int rank) const override { return hosts_.at(static_cast<std::size_t>(rank)); }

  void send(int peer, int channel, std::span<const std::byte> bytes, Notify notify) override {
    ARBALEST_CHECK(bytes.size() <= kMaxMessageBytes);
    check(module_.send(self_, peer, channel, bytes.data(), bytes.size(), notify.listener, notify.token));
  }
  void receive(int peer, int channel, std::span<std::byte> bytes, Notify notify) override {
    ARBALEST_CHECK(bytes.size() <= kMaxMessageBytes);
    check(module_.receive(self_, peer, channel, bytes.data(), bytes.size(), notify.listener, notify.token));
  }
  void all_reduce_sum(std::span<const float> from, float* to, Notify notify) override {
    ARBALEST_CHECK(from.size_bytes() <= kMaxMessageBytes);
    check(module_.all_reduce_sum(self_, from.data(), to, from.size(), notify.listener, notify.token));
  }

  bool poll() override {
    if (next_ == count_) {
      next_ = 0;
      count_ = 0;
      const int count = module_.poll(self_, ended_.data(), static_cast<int>(ended_.size()));
      check(count < 0 ? 1 : 0);
      count_ = static_cast<std::size_t>(count);
    }
    const bool any = count_ > 0;
    while (next_ < count_) {
      const ArbalestMpiCompletion ended = ended_[next_++];
      static_cast<Listener*>(ended.listener)->on_message(ended.token, ended.bytes);
    }
    return any;
  }

  void close() override {
    check(module_.close(self_));
    is_closed_ = true;
  }
  void abort(int exit_code) noexcept override { module_.abort(self_, exit_code); }

 private:
  void check(int result) const {
    if (result == 0) return;
    const std::string text = fmt::format("{}: {}", module_.library, module_.error(self_));
    if (const int peer = module_.error_peer(self_); peer >= 0) throw ConnectionError(peer, text);
    throw Error(ErrorKind::kPeer, text);
  }

  const Module& module_;
  void* const self_;
  ArbalestMpiWorld world_{};
  std::vector<std::string> hosts_;
  bool is_closed_ = false;
  std::array<ArbalestMpiCompletion, 64> ended_{};
  std::size_t next_ = 0;  // the ended message whose listener is called next
  std::size_t count_ = 0;
};

}  // namespace

std::vector<fs::path> module_directories() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) fail(ErrorKind::kUsage, "cannot find the program's own folder: /proc/self/exe: {}", error.message());
  const fs::path directory = program.parent_path();
  return {directory, directory.parent_path() / "lib" / "arbalest" / "modules"};
}

std::unique_ptr<Transport> open_module_transport(const Launch& launch, const std::vector<fs::path>& directories) {
  return std::make_unique<ModuleTransport>(launch, load_module(launch, directories));
}

}  // namespace arbalest::engine::process
