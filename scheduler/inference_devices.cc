#include "scheduler/inference_devices.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "engine/base/error.h"

namespace arbalest::scheduler {

namespace {

using learners::InferenceRunner;

// One pass over a ring: hands out its batches, and passes on the results in their order.
class Pass {
 public:
  Pass(dataflow::BatchRing& ring, const InferenceDevices::Take& take) : ring_(ring), take_(take) {}

  // Works until nothing is left or wanted. Each runner has a thread.
  void work(InferenceRunner& runner) noexcept {
    try {
      while (const std::optional<dataflow::Batch> batch = next()) {
        const InferenceRunner::Result result = runner.run(*batch);
        if (!pass_on(*batch, result)) return;
      }
    } catch (...) {
      stop(std::current_exception());
    }
  }

  void stop(std::exception_ptr failure) {
    const std::lock_guard lock(turns_);
    if (!failure_) failure_ = std::move(failure);
    is_over_ = true;
    turn_.notify_all();
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::optional<dataflow::Batch> next() {
    const std::lock_guard lock(input_);
    {
      const std::lock_guard turn(turns_);
      if (is_over_) return std::nullopt;
    }
    return ring_.next();
  }

  bool pass_on(const dataflow::Batch& batch, const InferenceRunner::Result& result) {
    std::unique_lock lock(turns_);
    turn_.wait(lock, [&] { return is_over_ || next_ == batch.number; });
    if (is_over_) return false;
    is_over_ = !take_(batch, result);
    ring_.release(batch.number);
    ++next_;
    turn_.notify_all();
    return !is_over_;
  }

  dataflow::BatchRing& ring_;
  const InferenceDevices::Take& take_;
  std::mutex input_;  // only one thread may wait for the ring's next batch
  std::mutex turns_;
  std::condition_variable turn_;
  std::uint64_t next_ = 0;  // number of the batch whose result is passed on next
  bool is_over_ = false;
  std::exception_ptr failure_;
};

}  // namespace

InferenceDevices::InferenceDevices(const dataflow::Graph& graph,
                                   std::span<const std::unique_ptr<engine::Device>> devices,
                                   std::span<const int> most_runners, const Options& options) {
  ARBALEST_CHECK(!devices.empty() && devices.size() == most_runners.size());
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const dataflow::ParameterLayout* layout = d == 0 ? nullptr : &models_.front()->plan().parameters();
    add_device(graph, *devices[d], most_runners[d], options, layout);
  }
}

void InferenceDevices::add_device(const dataflow::Graph& graph, engine::Device& device, int most_runners,
                                  const Options& options, const dataflow::ParameterLayout* layout) {
  const int threads = device.is_cuda() ? 1 : std::max(1, device.cores() / most_runners);
  std::optional<dataflow::Plan> training;
  if (options.training_batch) {
    training.emplace(graph, device,
                     dataflow::PlanOptions{.batch = *options.training_batch,
                                           .threads = threads,
                                           .precision = options.precision,
                                           .parameters = layout});
  }
  models_.push_back(std::make_unique<learners::InferenceModel>(
      graph, device,
      learners::InferenceModel::Options{.batch = options.batch,
                                        .threads = threads,
                                        .precision = options.precision,
                                        .output = options.output,
                                        .prediction = options.prediction,
                                        .parameters = training ? &training->parameters() : nullptr}));
  const learners::InferenceModel& model = *models_.back();
  for (int number = 0; number < most_runners; ++number) {
    if (number > 0 && device.free_memory() < model.runner_bytes()) return;
    try {
      runners_.push_back(std::make_unique<InferenceRunner>(model, number));
    } catch (const engine::Error& error) {
      if (number == 0 || error.kind() != engine::ErrorKind::kOutOfMemory) throw;
      return;  // those before it suffice
    }
  }
}

void InferenceDevices::load(std::span<const dataflow::NamedTensor> model) {
  for (const auto& each : models_) each->load(model);
}

void InferenceDevices::run(dataflow::BatchRing& ring, const Take& take) {
  Pass pass(ring, take);
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t r = 1; r < runners_.size(); ++r) {
        threads.emplace_back([&pass, &runner = *runners_[r]] { pass.work(runner); });
      }
    } catch (const std::system_error&) {
      // The system has no further thread: the runners that have one do all the work.
    }
    pass.work(*runners_.front());
  }
  pass.rethrow();
}

}  // namespace arbalest::scheduler
