// This is the interface of the MPI module, a shared library that the program loads only when it was launched as one of
// several processes. So the program itself needs no MPI. The functions do not throw. One thread makes all calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

// The version changes with every change of this file.
#define ARBALEST_MPI_MODULE_VERSION 2
#define ARBALEST_MPI_MODULE_NAME "arbalest_mpi_module"

struct ArbalestMpiWorld {
  int rank;
  int size;
  int local_rank;
  int local_size;
};

struct ArbalestMpiCompletion {
  void* listener;
  uint32_t token;
  size_t bytes;
};

struct ArbalestMpiModule {
  uint32_t version;
  const char* library;  // "Open MPI 4.1.4": the library that the module was built with

  // Returns null if memory is out.
  void* (*create)(void);
  // The functions with an int as result return 0, or another number after an error.

  // Initializes MPI on the calling thread, which makes all further calls. Blocks until all processes have called it.
  int (*open)(void* self, struct ArbalestMpiWorld* world);
  // Describes the last error.
  const char* (*error)(void* self);
  // Returns the rank whose connection has caused the last error, or -1 if no single rank has.
  int (*error_peer)(void* self);
  // Returns the name of a rank's host.
  const char* (*host)(void* self, int rank);

  int (*send)(void* self, int peer, int channel, const void* bytes, size_t size, void* listener, uint32_t token);
  int (*receive)(void* self, int peer, int channel, void* bytes, size_t size, void* listener, uint32_t token);
  int (*all_reduce_sum)(void* self, const float* from, float* to, size_t elements, void* listener, uint32_t token);

  // Writes up to `capacity` ended messages to `ended`. Returns their number, or -1 after an error. After an error the
  // next call goes on with the other messages.
  int (*poll)(void* self, struct ArbalestMpiCompletion* ended, int capacity);

  // Finalizes MPI. Blocks until all processes have called it.
  int (*close)(void* self);
  void (*destroy)(void* self);
  // Ends all processes.
  void (*abort)(void* self, int exit_code);
};

// The library exports only this function.
__attribute__((visibility("default"))) const struct ArbalestMpiModule* arbalest_mpi_module(void);
}
