#include "tests/cuda_stand_in/work.h"

#include <algorithm>

#include "tests/cuda_stand_in/executor.h"
#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

class OneStep final : public Execution {
 public:
  OneStep(const std::function<void()>& run, int device) : run_(run), device_(device) {}

  bool step() override {
    if (fails_now(device_)) return false;
    run_();
    return true;
  }

 private:
  const std::function<void()>& run_;  // belongs to the work, which the stream keeps
  const int device_;
};

class Wait final : public Execution {
 public:
  explicit Wait(Position position) : position_(position) {}

  bool can_step() const override { return position_.stream->completed >= position_.number; }
  bool step() override { return true; }

 private:
  const Position position_;
};

class GraphRun final : public Execution {
 public:
  GraphRun(const std::vector<Node>& nodes, CUstream_st& stream)
      : nodes_(nodes),
        stream_(stream),
        executions_(nodes.size()),
        done_(nodes.size(), false),
        remaining_(nodes.size()) {}

  bool can_step() const override { return remaining_ == 0 || !steppable().empty(); }

  bool step() override {
    if (remaining_ == 0) return true;
    const std::vector<std::size_t> choices = steppable();
    const std::size_t node = choices[random_below(choices.size())];
    std::unique_ptr<Execution>& execution = executions_[node];
    if (execution == nullptr) {
      execution = nodes_[node].work->start(stream_);
      if (!execution->can_step()) return false;
    }
    if (execution->step()) {
      done_[node] = true;
      execution.reset();
      --remaining_;
    }
    return remaining_ == 0;
  }

  bool waits_for_others() const override {
    return std::ranges::any_of(
        executions_, [](const auto& execution) { return execution != nullptr && execution->waits_for_others(); });
  }

 private:
  std::vector<std::size_t> steppable() const {
    std::vector<std::size_t> choices;
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (done_[node]) continue;
      const bool ready = std::ranges::all_of(nodes_[node].after, [&](std::size_t before) { return done_[before]; });
      if (ready && (executions_[node] == nullptr || executions_[node]->can_step())) choices.push_back(node);
    }
    return choices;
  }

  const std::vector<Node>& nodes_;
  CUstream_st& stream_;
  std::vector<std::unique_ptr<Execution>> executions_;
  std::vector<bool> done_;
  std::size_t remaining_;
};

}  // namespace

std::shared_ptr<const Work> make_work(std::string name, std::vector<const void*> uses, std::function<void()> run) {
  auto work = std::make_shared<Work>(Work{std::move(name), std::move(uses), {}});
  work->start = [run = std::move(run)](CUstream_st& stream) { return std::make_unique<OneStep>(run, stream.device); };
  return work;
}

std::shared_ptr<const Work> make_wait(Position position) {
  return std::make_shared<Work>(
      Work{"cudaStreamWaitEvent", {}, [=](CUstream_st&) { return std::make_unique<Wait>(position); }});
}

std::shared_ptr<const Work> make_graph_run(std::shared_ptr<const std::vector<Node>> nodes) {
  std::vector<const void*> uses;
  for (const Node& node : *nodes) uses.insert(uses.end(), node.work->uses.begin(), node.work->uses.end());
  const auto start = [nodes](CUstream_st& stream) { return std::make_unique<GraphRun>(*nodes, stream); };
  return std::make_shared<Work>(Work{"cudaGraphLaunch", std::move(uses), start, nodes});
}

}  // namespace arbalest::tests::cuda_stand_in
