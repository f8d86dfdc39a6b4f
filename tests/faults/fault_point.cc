// A library for LD_PRELOAD. The process that loads it has a fault at a chosen point. dead_ranks.py gives it to one rank
// of a run. The program knows nothing of it: the points are calls that every training makes of MPI, oneDNN and the C
// library.
//
// Variables of the environment:
//   FAULT_KIND     SIGKILL, SIGSEGV, SIGSTOP, EXIT (_exit(0)), EXCEPTION (the call throws) or FREEZER
//   FAULT_POINT    START (MPI_Init_thread), LOAD (a training image is opened), ROUND (oneDNN computes after the first
//                  all-reduce), SUM (a part of an all-reduce is sent), EVALUATION (a test image is opened), SAVE (the
//                  learners are sent to rank 0, or a file of a checkpoint is synced) or END (MPI_Finalize)
//   FAULT_COUNT    the call of the point that has the fault, from 1
//   FAULT_FREEZER  the directory of a cgroup of the freezer (version 1)
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

// An all-reduce sends slices of the model in parts of at most this size; the learners are sent as a whole.
constexpr int kSmallestPartBytes = 100'000;
constexpr int kLargestPartBytes = 1 << 18;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Calls the function that this library stands before.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// MPI has a second name for each of its functions, so that a library such as this one can take the first.
template <typename Function>
Function* mpi(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

void write_line(const std::string& path, const std::string& line) {
  std::FILE* file = next<std::FILE*(const char*, const char*)>("fopen")(path.c_str(), "w");
  if (file == nullptr) _exit(99);
  std::fputs(line.c_str(), file);
  if (std::fclose(file) != 0) _exit(99);
}

void have_fault() {
  const std::string kind = variable("FAULT_KIND");
  const std::string line = "fault_point: " + kind + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(99);
  if (kind == "SIGKILL") kill(getpid(), SIGKILL);
  if (kind == "SIGSTOP") raise(SIGSTOP);  // kill() may stop this thread only after it has gone on for a while
  if (kind == "SIGSEGV") raise(SIGSEGV);
  if (kind == "EXIT") _exit(0);
  if (kind == "EXCEPTION") throw std::runtime_error("a fault of the test");
  if (kind == "FREEZER") {
    const std::string group = variable("FAULT_FREEZER");
    write_line(group + "/cgroup.procs", std::to_string(getpid()));
    write_line(group + "/freezer.state", "FROZEN");
  }
}

void reach(std::string_view point) {
  static std::atomic<long> reached = 0;
  if (variable("FAULT_POINT") != point) return;
  if (++reached == std::atol(variable("FAULT_COUNT").c_str())) have_fault();
}

std::atomic<bool> is_in_rounds = false;

void reach_file(const char* path) {
  const std::string_view name = path;
  if (name.find("/train/") != std::string_view::npos) reach("LOAD");
  if (name.find("/test/") != std::string_view::npos) reach("EVALUATION");
}

std::string path_of(int file) {
  std::string path(4096, '\0');
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path;
}

}  // namespace

extern "C" {

// MPI's handles are pointers in Open MPI and integers in MPICH; both fit a word.
using Handle = std::uintptr_t;

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  reach("START");
  return mpi<int(int*, char***, int, int*)>("PMPI_Init_thread")(argc, argv, required, provided);
}

int MPI_Isend(const void* bytes, int count, Handle type, int peer, int tag, Handle communicator, void* request) {
  if (count >= kSmallestPartBytes && count <= kLargestPartBytes) {
    is_in_rounds = true;
    reach("SUM");
  }
  if (count > kLargestPartBytes) reach("SAVE");
  return mpi<int(const void*, int, Handle, int, int, Handle, void*)>("PMPI_Isend")(bytes, count, type, peer, tag,
                                                                                   communicator, request);
}

int MPI_Finalize() {
  reach("END");
  return mpi<int()>("PMPI_Finalize")();
}

int dnnl_primitive_execute(const void* primitive, void* stream, int count, const void* arguments) {
  if (is_in_rounds) reach("ROUND");
  return next<int(const void*, void*, int, const void*)>("dnnl_primitive_execute")(primitive, stream, count, arguments);
}

std::FILE* fopen(const char* path, const char* mode) {
  reach_file(path);
  return next<std::FILE*(const char*, const char*)>("fopen")(path, mode);
}

std::FILE* fopen64(const char* path, const char* mode) {
  reach_file(path);
  return next<std::FILE*(const char*, const char*)>("fopen64")(path, mode);
}

int fsync(int file) {
  if (path_of(file).find("/checkpoints/") != std::string::npos) reach("SAVE");
  return next<int(int)>("fsync")(file);
}

}  // extern "C"
