#include "tests/cuda_stand_in/clique.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr std::size_t kCalls = std::size_t{1} << 20U;  // whose order is checked

struct Seat {
  std::atomic<int> device;            // + 1; 0: nobody sits here
  std::atomic<std::uint64_t> thread;  // of the host, in the machine
  std::atomic<std::uint64_t> published;
  std::atomic<std::uint64_t> elements;
  std::atomic<std::uint64_t> taken;
};

}  // namespace

// New shared memory is filled with zeros.
struct CliqueTable {
  std::atomic<int> ranks;
  std::atomic<int> failure;
  std::array<Seat, Clique::kMostRanks> seats;
  std::array<std::atomic<std::uint32_t>, kCalls> issued;  // elements + 1, as issued by the first rank
};

namespace {

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

constexpr std::size_t kPage = 4096;
constexpr std::size_t kTableBytes = (sizeof(CliqueTable) + kPage - 1) / kPage * kPage;

std::size_t bytes_for(int ranks) {
  return kTableBytes + static_cast<std::size_t>(ranks) * Clique::kMostElements * sizeof(float);
}

// The open files of cliques that this process has created.
std::map<std::string, int>& named() {
  static std::map<std::string, int> files;
  return files;
}

std::uint64_t this_thread_number() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

std::runtime_error system_error(const char* what, const std::string& name) {
  return std::runtime_error(fmt::format("the stand-in's NCCL cannot {} '{}'", what, name));
}

}  // namespace

// Memory without a file is freed with the last process that uses it, however that process ends. /proc lets the other
// processes open it.
std::string Clique::create() {
  const int file = memfd_create("nccl", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_for(kMostRanks))) != 0) throw system_error("create", "nccl");
  const std::string name = fmt::format("/proc/{}/fd/{}", getpid(), file);
  named()[name] = file;
  return name;
}

void Clique::forget(const std::string& name) {
  const auto found = named().find(name);
  if (found == named().end()) return;
  close(found->second);
  named().erase(found);
}

void Clique::forget_all() {
  for (const auto& [name, file] : named()) close(file);
  named().clear();
}

Clique::Clique(const std::string& name, int ranks, int rank, int device)
    : ranks_(ranks), rank_(rank), device_(device), bytes_(bytes_for(ranks)) {
  const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) throw system_error("open", name);
  void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) throw system_error("map", name);
  table_ = static_cast<CliqueTable*>(memory);
}

Clique::~Clique() { munmap(table_, bytes_); }

std::string Clique::take_seat() {
  int others = 0;
  if (!table_->ranks.compare_exchange_strong(others, ranks_) && others != ranks_) {
    return fmt::format("rank {} of {} joins {} ranks", rank_, ranks_, others);
  }
  int free = 0;
  Seat& seat = table_->seats[static_cast<std::size_t>(rank_)];
  seat.thread = this_thread_number();
  if (!seat.device.compare_exchange_strong(free, device_ + 1)) return fmt::format("rank {} joins twice", rank_);
  return "";
}

bool Clique::is_complete() const {
  return std::ranges::all_of(std::span(table_->seats).first(static_cast<std::size_t>(ranks_)),
                             [](const Seat& seat) { return seat.device != 0; });
}

int Clique::doubled_device() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const int device = table_->seats[static_cast<std::size_t>(rank)].device;
    for (int before = 0; before < rank; ++before) {
      if (table_->seats[static_cast<std::size_t>(before)].device == device) return device - 1;
    }
  }
  return -1;
}

bool Clique::is_of_this_thread() const {
  return std::ranges::all_of(std::span(table_->seats).first(static_cast<std::size_t>(ranks_)),
                             [](const Seat& seat) { return seat.device != 0 && seat.thread == this_thread_number(); });
}

std::size_t Clique::issue(std::uint64_t call, std::size_t elements) {
  if (call >= kCalls) return elements;
  std::uint32_t others = 0;
  const auto own = static_cast<std::uint32_t>(elements + 1);
  return table_->issued[call].compare_exchange_strong(others, own) ? elements : others - 1;
}

bool Clique::can_publish(std::uint64_t call) const {
  return std::ranges::all_of(std::span(table_->seats).first(static_cast<std::size_t>(ranks_)),
                             [=](const Seat& seat) { return seat.taken >= call; });
}

void Clique::publish(std::uint64_t call, std::span<const float> elements) {
  std::ranges::copy(elements, const_cast<float*>(elements_of(rank_)));
  Seat& seat = table_->seats[static_cast<std::size_t>(rank_)];
  seat.elements = elements.size();
  seat.published = call + 1;
}

bool Clique::can_take(std::uint64_t call) const {
  return std::ranges::all_of(std::span(table_->seats).first(static_cast<std::size_t>(ranks_)),
                             [=](const Seat& seat) { return seat.published > call; });
}

bool Clique::take(std::uint64_t call, std::size_t count, const std::function<void(int rank, const float*)>& read) {
  const auto seats = std::span(table_->seats).first(static_cast<std::size_t>(ranks_));
  const bool are_equal = std::ranges::all_of(seats, [=](const Seat& seat) { return seat.elements == count; });
  for (int rank = 0; rank < ranks_ && are_equal; ++rank) read(rank, elements_of(rank));
  table_->seats[static_cast<std::size_t>(rank_)].taken = call + 1;
  return are_equal;
}

void Clique::fail(int error) { table_->failure = error; }

int Clique::failure() const { return table_->failure; }

const float* Clique::elements_of(int rank) const {
  return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(table_) + kTableBytes) +
         static_cast<std::size_t>(rank) * kMostElements;
}

}  // namespace arbalest::tests::cuda_stand_in
