// This module uses MPI with two-sided messages. MPI is initialized for calls from one thread only
// (MPI_THREAD_FUNNELED): more threads would cost about a microsecond a message. Nothing here blocks between open() and
// close(): MPI polls at full speed while it blocks.
#include "engine/process/mpi/module.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

#if defined(OPEN_MPI)
#define ARBALEST_TEXT_OF(x) #x
#define ARBALEST_TEXT(x) ARBALEST_TEXT_OF(x)
constexpr const char* kLibrary = "Open MPI " ARBALEST_TEXT(OMPI_MAJOR_VERSION) "." ARBALEST_TEXT(
    OMPI_MINOR_VERSION) "." ARBALEST_TEXT(OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
constexpr const char* kLibrary = "MPICH " MPICH_VERSION;
#else
constexpr const char* kLibrary = "an MPI library";
#endif

constexpr std::size_t kHostBytes = 256;

struct Message {
  int peer;  // -1: all ranks
  void* listener;
  std::uint32_t token;
};

class Communication {
 public:
  // Returns whether it worked; otherwise error() says why.
  bool open(ArbalestMpiWorld* world) {
    int provided = MPI_THREAD_SINGLE;
    if (!check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread")) return false;
    if (provided < MPI_THREAD_FUNNELED) {
      error_ = "this MPI library does not support programs with threads (MPI_THREAD_FUNNELED)";
      return false;
    }
    // Errors come back instead of ending the process. MPICH reports some of them on these two.
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    // Our own communicator: nobody else's messages can meet ours.
    if (!check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup")) return false;
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator_, &world->rank);
    MPI_Comm_size(communicator_, &world->size);
    MPI_Comm local = MPI_COMM_NULL;
    if (!check(MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, world->rank, MPI_INFO_NULL, &local),
               "MPI_Comm_split_type")) {
      return false;
    }
    MPI_Comm_rank(local, &world->local_rank);
    MPI_Comm_size(local, &world->local_size);
    MPI_Comm_free(&local);
    return gather_hosts(world->size);
  }

  const char* error() const { return error_.c_str(); }
  int error_peer() const { return error_peer_; }
  const char* host(int rank) const { return hosts_.data() + static_cast<std::size_t>(rank) * kHostBytes; }

  bool send(int channel, const void* bytes, std::size_t size, const Message& message) {
    MPI_Request request = MPI_REQUEST_NULL;
    return check(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, message.peer, channel, communicator_, &request),
                 "MPI_Isend", message.peer) &&
           add(request, message);
  }

  bool receive(int channel, void* bytes, std::size_t size, const Message& message) {
    MPI_Request request = MPI_REQUEST_NULL;
    return check(MPI_Irecv(bytes, static_cast<int>(size), MPI_BYTE, message.peer, channel, communicator_, &request),
                 "MPI_Irecv", message.peer) &&
           add(request, message);
  }

  bool all_reduce_sum(const float* from, float* to, std::size_t elements, const Message& message) {
    MPI_Request request = MPI_REQUEST_NULL;
    return check(MPI_Iallreduce(from, to, static_cast<int>(elements), MPI_FLOAT, MPI_SUM, communicator_, &request),
                 "MPI_Iallreduce") &&
           add(request, message);
  }

  // Looks at all requests before it reports that none has ended, and looks twice: MPI_Testsome of Open MPI 4.1 looks at
  // the requests first and moves messages on then.
  int poll(ArbalestMpiCompletion* ended, int capacity) {
    if (std::exchange(has_late_error_, false)) return -1;
    // MPI_Testsome reports as many as it finds, so it gets no more requests than fit.
    const int count = std::min(static_cast<int>(requests_.size()), std::min(capacity, kMostTested));
    if (count == 0) return 0;
    const int windows = (static_cast<int>(requests_.size()) + count - 1) / count;
    for (int window = 0; window < 2 * windows; ++window) {
      rotate(count);
      const int found = test(ended, count);
      if (found != 0) return found;
    }
    return 0;
  }

  bool close() {
    MPI_Comm_free(&communicator_);
    return check(MPI_Finalize(), "MPI_Finalize");
  }

  void abort(int exit_code) { MPI_Abort(communicator_, exit_code); }

 private:
  static constexpr int kMostTested = 512;

  // Tests the first requests. Returns how many have ended well, or -1 if there are only errors. An error beside
  // messages that have ended well is reported by the next call of poll().
  int test(ArbalestMpiCompletion* ended, int count) {
    int found = 0;
    const int result = MPI_Testsome(count, requests_.data(), &found, indices_.data(), statuses_.data());
    const bool has_errors = result == MPI_ERR_IN_STATUS;
    if (!has_errors && !check(result, "MPI_Testsome")) return -1;
    if (found == MPI_UNDEFINED) return 0;
    int good = 0;
    for (int i = 0; i < found; ++i) {
      const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
      const Message& message = messages_[static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)])];
      if (has_errors && !check(status.MPI_ERROR, "MPI_Testsome", message.peer)) continue;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      ended[good++] = {message.listener, message.token, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
    }
    remove_ended();
    has_late_error_ = good < found && good > 0;
    return good == 0 && found > 0 ? -1 : good;
  }

  // `peer`: the rank whose message it was, if any. A message that is too long is no error of the connection.
  bool check(int result, const char* function, int peer = -1) {
    if (result == MPI_SUCCESS) return true;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(result, text.data(), &length);
    error_ = std::string(function) + " failed: " + text.data();
    int error_class = MPI_SUCCESS;
    MPI_Error_class(result, &error_class);
    error_peer_ = error_class == MPI_ERR_TRUNCATE ? -1 : peer;
    return false;
  }

  bool gather_hosts(int size) {
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    if (!check(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name")) return false;
    std::array<char, kHostBytes> own{};
    std::snprintf(own.data(), own.size(), "%s", name.data());
    hosts_.resize(static_cast<std::size_t>(size) * kHostBytes);
    return check(MPI_Allgather(own.data(), static_cast<int>(kHostBytes), MPI_CHAR, hosts_.data(),
                               static_cast<int>(kHostBytes), MPI_CHAR, communicator_),
                 "MPI_Allgather");
  }

  bool add(MPI_Request request, const Message& message) {
    requests_.push_back(request);
    messages_.push_back(message);
    if (indices_.size() < requests_.size()) {
      indices_.resize(requests_.capacity());
      statuses_.resize(requests_.capacity());
    }
    return true;
  }

  // With more requests than one call of MPI tests, each call begins behind those of the call before.
  void rotate(int count) {
    if (static_cast<std::size_t>(count) == requests_.size()) return;
    std::rotate(requests_.begin(), requests_.begin() + count, requests_.end());
    std::rotate(messages_.begin(), messages_.begin() + count, messages_.end());
  }

  // MPI has replaced the ended requests by MPI_REQUEST_NULL.
  void remove_ended() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      messages_[kept++] = messages_[i];
    }
    requests_.resize(kept);
    messages_.resize(kept);
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::string error_ = "out of memory";  // the first exception that is caught is reported as this
  int error_peer_ = -1;
  bool has_late_error_ = false;  // the next call of poll() reports error_
  std::vector<char> hosts_;      // [ranks][kHostBytes]
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;  // of the requests
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
};

Communication& of(void* self) { return *static_cast<Communication*>(self); }

// Calls `body`, which may throw because memory is out. Returns 0 if it has worked.
template <typename Body>
int result_of(const Body& body) {
  try {
    return body() ? 0 : 1;
  } catch (...) {
    return 1;
  }
}

constexpr ArbalestMpiModule kModule = {
    .version = ARBALEST_MPI_MODULE_VERSION,
    .library = kLibrary,
    .create = []() -> void* { return new (std::nothrow) Communication; },
    .open = [](void* self, ArbalestMpiWorld* world) { return result_of([&] { return of(self).open(world); }); },
    .error = [](void* self) { return of(self).error(); },
    .error_peer = [](void* self) { return of(self).error_peer(); },
    .host = [](void* self, int rank) { return of(self).host(rank); },
    .send =
        [](void* self, int peer, int channel, const void* bytes, size_t size, void* listener, uint32_t token) {
          return result_of([&] { return of(self).send(channel, bytes, size, {peer, listener, token}); });
        },
    .receive =
        [](void* self, int peer, int channel, void* bytes, size_t size, void* listener, uint32_t token) {
          return result_of([&] { return of(self).receive(channel, bytes, size, {peer, listener, token}); });
        },
    .all_reduce_sum =
        [](void* self, const float* from, float* to, size_t elements, void* listener, uint32_t token) {
          return result_of([&] { return of(self).all_reduce_sum(from, to, elements, {-1, listener, token}); });
        },
    .poll =
        [](void* self, ArbalestMpiCompletion* ended, int capacity) {
          int found = -1;
          result_of([&] { return (found = of(self).poll(ended, capacity)) >= 0; });
          return found;
        },
    .close = [](void* self) { return result_of([&] { return of(self).close(); }); },
    .destroy = [](void* self) { delete &of(self); },
    .abort = [](void* self, int exit_code) { of(self).abort(exit_code); },
};

}  // namespace

const ArbalestMpiModule* arbalest_mpi_module() { return &kModule; }
