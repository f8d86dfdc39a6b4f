// The ranks of an NCCL communicator, in one process or in several. They meet in shared memory, which NCCL's unique id
// names. Only what NCCL tells its ranks passes through it: there is no way to learn that a rank has died.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace arbalest::tests::cuda_stand_in {

struct CliqueTable;

class Clique {
 public:
  static constexpr int kMostRanks = 16;
  static constexpr std::size_t kMostElements = std::size_t{1} << 24U;  // that a rank publishes

  // Creates the shared memory of a new clique and returns its name, which other processes of this machine can use, too.
  static std::string create();
  // Frees the name, and the memory when no rank uses it any more. Call it when all ranks are there. Does nothing if
  // another process has created the clique.
  static void forget(const std::string& name);
  static void forget_all();

  // The part of one rank. `device`: number of the rank's GPU in the machine. Throws std::runtime_error if there is no
  // such clique.
  Clique(const std::string& name, int ranks, int rank, int device);
  ~Clique();
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;

  int ranks() const noexcept { return ranks_; }
  // Takes the rank's seat. Returns why it cannot; "" if it has.
  std::string take_seat();
  bool is_complete() const;
  // Returns the device that two ranks are on, or -1. Call it when all are there.
  int doubled_device() const;
  // Whether all ranks belong to the calling host thread.
  bool is_of_this_thread() const;

  // The rank issues its next call. Returns the number of elements that another rank has issued it with.
  std::size_t issue(std::uint64_t call, std::size_t elements);
  // A call has two parts. A rank publishes its elements once all ranks have taken those of the last call, and takes
  // what it needs once all have published.
  bool can_publish(std::uint64_t call) const;
  void publish(std::uint64_t call, std::span<const float> elements);
  bool can_take(std::uint64_t call) const;
  // Calls read(rank, its elements) in order of ranks. Returns false, without a call, if not all ranks have published
  // `count` elements.
  bool take(std::uint64_t call, std::size_t count, const std::function<void(int rank, const float*)>& read);

  void fail(int error);
  int failure() const;

 private:
  const float* elements_of(int rank) const;

  const int ranks_;
  const int rank_;
  const int device_;
  std::size_t bytes_ = 0;
  CliqueTable* table_ = nullptr;
};

}  // namespace arbalest::tests::cuda_stand_in
