#include "engine/cpu/runtime/stream.h"

#include <cstring>
#include <string_view>
#include <system_error>

#include "engine/base/error.h"
#include "engine/cpu/runtime/errors.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/threads.h"
#include "engine/host/completions.h"
#include "engine/host/pinning.h"
#include "engine/stream_observer.h"

namespace arbalest::engine::cpu {

namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// The current exception with `place` before its message; other exceptions become an Error.
std::exception_ptr with_place(std::string_view place) noexcept {
  try {
    try {
      rethrow_as_error();
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", place, error.what()));
    }
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

CpuStream::CpuStream(Options options)
    : options_(std::move(options)),
      seat_(options_.lending != nullptr ? &options_.lending->reserve(options_.lends) : nullptr),
      queue_(options_.on_caller ? 0 : kQueueCapacity) {
  if (options_.on_caller) return;
  try {
    worker_ = std::thread([this] { work_loop(); });
  } catch (const std::system_error& error) {
    fail(ErrorKind::kOutOfMemory, "{}: cannot start its thread: {}; look at 'ulimit -u' and at pids.max", options_.name,
         error.code().message());
  }
}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pushed_.notify_one();
  if (worker_.joinable()) worker_.join();
  if (seat_ != nullptr) options_.lending->leave(*seat_);
}

void CpuStream::push(Work work, TaskKind kind, const char* label) {
  ARBALEST_CHECK(recording_ == nullptr);
  Command command{std::move(work), {label, kind, phase_}, batch_};
  if (options_.on_caller) {
    const ThreadCountScope scope(options_.threads);
    std::exception_ptr error = run(command);
    const std::uint64_t position = passed_count_.load() + 1;
    {
      const std::lock_guard lock(mutex_);
      pushed_count_ = position;
    }
    pass(position, std::move(error));
    return;
  }
  {
    std::unique_lock lock(mutex_);
    ++waiters_;
    passed_.wait(lock, [this] { return pushed_count_ - passed_count_.load() < kQueueCapacity; });
    --waiters_;
    queue_[pushed_count_ % kQueueCapacity] = std::move(command);
    ++pushed_count_;
  }
  pushed_.notify_one();
}

void CpuStream::submit(std::unique_ptr<Task> task, const char* label) {
  if (recording_ != nullptr) {
    recording_->entries.push_back({std::move(task), label});
  } else {
    push(std::move(task), TaskKind::kOperator, label);
  }
}

void CpuStream::wait(const Event& event, const char* label) {
  if (event.stream() == nullptr || event.stream() == this) return;
  // Only a recorded point can be waited for, so enqueued work depends only on work enqueued earlier.
  const auto* other = static_cast<const CpuStream*>(event.stream());
  {
    const std::lock_guard lock(other->mutex_);
    ARBALEST_CHECK(event.position() <= other->pushed_count_);
  }
  push(event, TaskKind::kWait, label);
}

void CpuStream::copy(void* to, const void* from, std::size_t bytes, const char* label) {
  if (recording_ != nullptr) {
    submit(make_task([=](const TaskContext&) { std::memcpy(to, from, bytes); }), label);
  } else {
    push(Copy{to, from, bytes}, TaskKind::kCopy, label);
  }
}

void CpuStream::fill_zero(void* to, std::size_t bytes, const char* label) {
  if (recording_ != nullptr) {
    submit(make_task([=](const TaskContext&) { std::memset(to, 0, bytes); }), label);
  } else {
    push(FillZero{to, bytes}, TaskKind::kCopy, label);
  }
}

void CpuStream::enqueue(const FlatTask& task, const char* label) {
  std::visit(
      [&](const auto& flat) {
        if (recording_ != nullptr) {
          submit(make_task([flat](const TaskContext& context) { run_flat(flat, context); }), label);
        } else {
          push(flat, TaskKind::kPass, label);
        }
      },
      task);
}

void CpuStream::launch(const TaskGraph& graph, const char* label) {
  push(static_cast<const CpuTaskGraph*>(&graph), TaskKind::kGraph, label);
}

Event CpuStream::record() {
  ARBALEST_CHECK(recording_ == nullptr);
  const std::lock_guard lock(mutex_);
  return {this, pushed_count_};
}

Event CpuStream::deliver(void* to, const void* from, std::size_t bytes, const char* label) {
  push(Copy{to, from, bytes}, TaskKind::kResult, label);
  return record();
}

void CpuStream::report(Completions& to, std::uint64_t value) {
  push(Report{&to, value}, TaskKind::kOperator, "report");
}

void CpuStream::drain() noexcept { wait_passed(record().position()); }

void CpuStream::begin_recording(const ReplicaMemory& replicas) {
  ARBALEST_CHECK(replicas.count == 1);
  ARBALEST_CHECK(recording_ == nullptr);
  recording_ = std::make_unique<CpuTaskGraph>();
}

std::unique_ptr<TaskGraph> CpuStream::end_recording() {
  ARBALEST_CHECK(recording_ != nullptr);
  return std::move(recording_);
}

bool CpuStream::has_passed(std::uint64_t position) const {
  return passed_count_.load(std::memory_order_acquire) >= position;
}

std::exception_ptr CpuStream::wait_passed(std::uint64_t position) {
  std::unique_lock lock(mutex_);
  ++waiters_;
  passed_.wait(lock, [&] { return passed_count_.load() >= position; });
  --waiters_;
  return error_ != nullptr && error_position_ <= position ? error_ : nullptr;
}

std::exception_ptr CpuStream::wait_for(CpuStream& other, std::uint64_t position) {
  if (seat_ == nullptr || other.seat_ == nullptr || other.has_passed(position)) return other.wait_passed(position);
  const CoreLending::Wait lent(*options_.lending, *seat_, *other.seat_);
  return other.wait_passed(position);
}

void CpuStream::synchronize(std::uint64_t position) {
  if (const std::exception_ptr error = wait_passed(position)) std::rethrow_exception(error);
}

void CpuStream::execute(Work& work, const char* label) {
  const TaskContext context{options_.threads};
  std::visit(Overloaded{
                 [](std::monostate) {},
                 [&](const Event& event) {
                   if (options_.observer != nullptr && options_.observer->drops_wait(*this, label)) return;
                   auto* other = static_cast<CpuStream*>(event.stream());
                   if (const std::exception_ptr error = wait_for(*other, event.position())) {
                     std::rethrow_exception(error);
                   }
                 },
                 [](const Copy& copy) { std::memcpy(copy.to, copy.from, copy.bytes); },
                 [](const FillZero& fill) { std::memset(fill.to, 0, fill.bytes); },
                 [](const Report& report) { report.to->add(report.value); },
                 [&](const CpuTaskGraph* graph) {
                   for (const CpuTaskGraph::Entry& entry : graph->entries) {
                     try {
                       entry.task->run(context);
                     } catch (...) {
                       std::rethrow_exception(with_place(entry.label));
                     }
                   }
                 },
                 [&](std::unique_ptr<Task>& task) { task->run(context); },
                 [&](const auto& flat) { run_flat(flat, context); },
             },
             work);
}

void CpuStream::abandon(Work& work) noexcept {
  if (const auto* report = std::get_if<Report>(&work)) report->to->add(report->value);
  if (auto* task = std::get_if<std::unique_ptr<Task>>(&work)) (*task)->abandon();
  if (auto* graph = std::get_if<const CpuTaskGraph*>(&work)) {
    for (const CpuTaskGraph::Entry& entry : (*graph)->entries) entry.task->abandon();
  }
}

std::string CpuStream::place_of(const Command& command) const {
  if (!command.batch) return fmt::format("{}: {}", options_.name, command.task.label);
  return fmt::format("{}, mini-batch {}: {}", options_.name, *command.batch, command.task.label);
}

std::exception_ptr CpuStream::settle() noexcept {
  try {
    set_thread_count(options_.threads);
    host::pin_this_thread(options_.pinned_cores);
    if (seat_ != nullptr) options_.lending->enter(*seat_);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

std::exception_ptr CpuStream::run(Command& command) {
  std::exception_ptr error;
  if (failed_) {
    abandon(command.work);
  } else {
    try {
      if (options_.observer != nullptr) options_.observer->before_task(*this, command.task);
      execute(command.work, command.task.label);
    } catch (...) {
      const bool from_elsewhere = std::holds_alternative<Event>(command.work);
      error = from_elsewhere ? std::current_exception() : with_place(place_of(command));
      abandon(command.work);
      failed_ = true;
    }
    if (options_.observer != nullptr) options_.observer->after_task(*this, command.task);
  }
  command = Command{};  // destroys a one-time task before its point counts as passed
  return error;
}

void CpuStream::pass(std::uint64_t position, std::exception_ptr error) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (error != nullptr) {
      error_ = std::move(error);
      error_position_ = position;
    }
    passed_count_.store(position, std::memory_order_release);
    wake = waiters_ > 0;
  }
  if (wake) passed_.notify_all();
}

void CpuStream::work_loop() {
  std::uint64_t position = 0;
  if (const std::exception_ptr error = settle()) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    failed_ = true;
  }
  for (;;) {
    Command command;
    {
      std::unique_lock lock(mutex_);
      pushed_.wait(lock, [&] { return pushed_count_ > position || stopping_; });
      if (pushed_count_ == position) return;
      command = std::move(queue_[position % kQueueCapacity]);
    }
    ++position;
    pass(position, run(command));
  }
}

}  // namespace arbalest::engine::cpu
