// A scheduler with real devices, learners, averaging and input, and a small synthetic dataset, for tests of training.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_order.h"
#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/batches/cached_data.h"
#include "dataflow/input/batches/random_sequence.h"
#include "dataflow/input/images/stored_images.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/outputs/classification.h"
#include "dataflow/parameter_rules.h"
#include "dataflow/split/split_graph.h"
#include "engine/backends/devices.h"
#include "engine/host/pool.h"
#include "engine/process/world.h"
#include "scheduler/scheduler.h"
#include "tests/support/read_example.h"

namespace arbalest::tests {

// Class prototypes plus noise; every number is a function of (example, pixel).
class MadeUpImages final : public dataflow::Dataset {
 public:
  MadeUpImages(std::int64_t size, engine::Shape image, std::int64_t classes)
      : size_(size), description_(dataflow::image_input(image, classes)) {}

  const std::string& name() const noexcept override { return name_; }
  const dataflow::InputDescription& description() const noexcept override { return description_; }
  std::int64_t size() const noexcept override { return size_; }

  void read(std::int64_t example, const dataflow::ExamplePosition&,
            std::span<const dataflow::InputTensor> features) const override {
    const auto index = static_cast<std::uint64_t>(example);
    dataflow::RandomSequence noise(7, 1, index);
    dataflow::RandomSequence prototype(7, 2, static_cast<std::uint64_t>(class_of(example)));
    for (float& value : features.front().as<float>()) value = uniform(prototype) + 0.5F * uniform(noise) - 0.75F;
  }
  void read_label(std::int64_t example, const dataflow::InputTensor& label) const override {
    label.as<std::int32_t>().front() = class_of(example);
  }

 private:
  std::int32_t class_of(std::int64_t example) const {
    return static_cast<std::int32_t>((example * 5 + example / 7) % description_.classes());
  }
  static float uniform(dataflow::RandomSequence& random) {
    return static_cast<float>(random.next() >> 40U) * 0x1.0p-24F;
  }

  std::string name_ = "made up";
  std::int64_t size_;
  dataflow::InputDescription description_;
};

// Converts the images to bytes.
inline std::unique_ptr<dataflow::ByteImages> as_bytes(const MadeUpImages& images) {
  const auto elements = static_cast<std::size_t>(images.description().image().elements());
  std::vector<float> image(elements);
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  for (std::int64_t example = 0; example < images.size(); ++example) {
    read_image(images, example, {}, image.data());
    for (const float value : image) pixels.push_back(static_cast<std::uint8_t>((value + 0.75F) / 1.5F * 255.0F));
    labels.push_back(dataflow::class_of(images, example));
  }
  return std::make_unique<dataflow::ByteImages>("made up bytes", images.description(),
                                                dataflow::Normalization{{0.5F}, {2.0F / 3.0F}}, std::move(pixels),
                                                std::move(labels));
}

inline std::shared_ptr<const dataflow::Layer> dense_layer(std::int64_t units,
                                                          dataflow::DenseSplit split = dataflow::DenseSplit::kNone) {
  dataflow::DenseLayer::Options options;
  options.units = units;
  options.split = split;
  return std::make_shared<dataflow::DenseLayer>(options);
}

inline std::vector<dataflow::LayerDescription> logistic_regression(std::int64_t classes) {
  const dataflow::DenseLayer::Options logits{
      .units = classes, .weight = {.initializer = {.kind = dataflow::Initializer::Kind::kConstant}}};
  return {{"logits", {"image"}, std::make_shared<dataflow::DenseLayer>(logits)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

// Renumbers the batches of another order.
class RenumberedOrder final : public dataflow::BatchOrder {
 public:
  using Number = std::function<std::uint64_t(std::uint64_t)>;

  RenumberedOrder(dataflow::BatchOrder& order, Number number) : order_(order), number_(std::move(number)) {}
  std::int64_t batch_size() const noexcept override { return order_.batch_size(); }
  std::int64_t batches_per_epoch() const noexcept override { return order_.batches_per_epoch(); }
  std::optional<std::uint64_t> batches() const noexcept override { return order_.batches(); }
  void indices(std::uint64_t batch, std::span<std::int64_t> out) override {
    order_.indices(number_ ? number_(batch) : batch, out);
  }

 private:
  dataflow::BatchOrder& order_;
  Number number_;
};

// The form in which the learners get the synthetic images.
enum class RigInput {
  kFloats,   // through a ring
  kBytes,    // through a ring, normalized there
  kResident  // as bytes, gathered on the device
};

struct RigOptions {
  std::vector<std::string> devices = {"cpu"};
  std::vector<int> learners = {1};  // by device
  int team = 1;                     // learners of a team, at most
  int most_learners = 0;            // limit for resize(), over all devices; 0: no resizing
  std::int64_t batch = 4;
  std::int64_t examples = 96;
  engine::Shape image{1, 4, 4};
  std::int64_t classes = 3;
  // Makes a dataset of `examples` examples in place of the synthetic images; empty: the images.
  std::function<std::unique_ptr<dataflow::Dataset>()> data = {};
  std::vector<dataflow::LayerDescription> layers;  // empty: logistic regression
  dataflow::ParameterRuleOf rule_of = {};          // empty: no rules
  scheduler::LearningRateSchedule learning_rate{.base = 0.1, .with_learners = scheduler::RateScaling::kKeep};
  sma::Options synchronization;
  std::vector<sma::Options> switches = {};  // schemes that the run may switch to
  double moving_average_epochs = 0.0;
  std::optional<double> mean_from_epoch = {};
  bool evaluates_replicas = false;
  bool measures_gradients = false;
  int compare_rounds = 0;  // rounds between two comparisons of the devices' copies; 0: never
  std::optional<scheduler::SpikeRule> spike = {};
  // Wraps the collective that connects the devices; empty: the real one alone.
  std::function<std::unique_ptr<engine::Collective>(std::unique_ptr<engine::Collective>)> around_collective = {};
  engine::UpdateRule rule = engine::Sgd{.momentum = 0.9F, .weight_decay = 0.01F};
  std::optional<float> clip_gradient_norm = {};
  std::vector<dataflow::ParameterKind> without_decay = {};
  engine::Precision precision = engine::Precision::kFloat32;
  std::uint64_t seed = 1;
  engine::StreamObserver* observer = nullptr;
  bool graphs = true;  // for GPUs
  RigInput input = RigInput::kFloats;
  RenumberedOrder::Number batch_of = {};    // maps a mini-batch's number to its number in the shuffled order
  engine::process::World* world = nullptr;  // the processes of the run; null: this one alone
  std::int64_t statistic_batches = 0;       // mini-batches for re-estimating the central model's statistics; 0: not
                                            // re-estimated
};

class TrainingRig {
 public:
  explicit TrainingRig(const RigOptions& options)
      : data_(make_data(options)),
        host_pool_(2),
        order_(options.examples, options.batch, options.seed),
        training_order_(order_, options.batch_of),
        statistics_order_(order_, options.statistic_batches),
        test_order_(options.examples, options.batch) {
    const int learners =
        std::max(options.most_learners, std::accumulate(options.learners.begin(), options.learners.end(), 0));
    const auto layers = options.layers.empty() ? logistic_regression(options.classes) : options.layers;
    dataflow::Graph graph = dataflow::Graph::build(data_->description(), layers);
    if (options.rule_of) graph = dataflow::with_rules(graph, options.rule_of);
    for (const std::string& name : options.devices) {
      devices_.push_back(
          engine::open_device(engine::parse_device(name), {.observer = options.observer, .graphs = options.graphs}));
    }
    std::vector<sma::Options> schemes = options.switches;
    schemes.push_back(options.synchronization);
    const int iteration = sma::longest_iteration(schemes);
    within_bound_ = sma::most_steps_within_bound(schemes);
    const bool sums_gradients = std::ranges::any_of(
        schemes, [](const sma::Options& each) { return each.scheme == sma::Scheme::kAsyncSgd && each.period > 1; });
    std::int64_t part_bytes = 0;
    for (const sma::Options& scheme : schemes) part_bytes = std::max(part_bytes, scheme.bucket_bytes);
    ring_ = make_ring(options, training_order_, learners, iteration);
    test_ring_ = make_ring(options, test_order_, learners, std::nullopt);
    if (options.statistic_batches > 0) statistics_ring_ = make_ring(options, statistics_order_, learners, std::nullopt);
    for (std::size_t d = 0; d < devices_.size() && options.input == RigInput::kResident; ++d) {
      resident_.emplace_back(*data_, *devices_[d]);
    }
    engine::process::World& world = options.world == nullptr ? alone_ : *options.world;
    const bool is_split = (devices_.size() > 1 || world.size() > 1) && !dataflow::split_layers(graph).empty();
    places_ = is_split ? engine::make_exchange(devices_, world) : std::vector<engine::ExchangeMember>(devices_.size());
    const auto resident_on = [&](std::size_t d) { return resident_.empty() ? nullptr : &resident_[d]; };
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      pools_.push_back(std::make_unique<learners::LearnerPool>(
          graph, *devices_[d],
          learners::PoolOptions{.batch = options.batch,
                                .evaluation_batch = options.batch,
                                .precision = options.precision,
                                .without_decay = options.without_decay,
                                .exchange = places_[d],
                                .team = options.team,
                                .learner = {.result_slots = scheduler::result_slots(iteration),
                                            .rule = options.rule,
                                            .clip_gradient_norm = options.clip_gradient_norm,
                                            .gradient_part_bytes = is_split && devices_[d]->is_cuda() ? 0 : part_bytes,
                                            .sums_gradients = sums_gradients,
                                            .training_data = resident_on(d),
                                            .evaluation_data = resident_on(d),
                                            .measures_statistics = options.statistic_batches > 0,
                                            .evaluates_own_weights = options.evaluates_replicas}},
          options.learners[d], d == 0 ? nullptr : &pools_.front()->training_plan().parameters()));
    }
    collective_ = engine::make_collective(devices_, world);
    if (options.around_collective) collective_ = options.around_collective(std::move(collective_));
    scheduler_ = std::make_unique<scheduler::Scheduler>(
        scheduler::Options{.learning_rate = options.learning_rate,
                           .synchronization = options.synchronization,
                           .switches = options.switches,
                           .seed = options.seed,
                           .batches_per_epoch = order_.batches_per_epoch(),
                           .moving_average = {options.moving_average_epochs, options.mean_from_epoch},
                           .evaluates_replicas = options.evaluates_replicas,
                           .may_resize = options.most_learners > 0,
                           .most_learners = learners,
                           .measures_gradients = options.measures_gradients,
                           .spike = options.spike,
                           .compare_rounds = options.compare_rounds,
                           .statistics_ring = statistics_ring_.get()},
        pools_, *collective_, world);
  }

  const dataflow::Dataset& data() const { return *data_; }
  dataflow::ShuffledOrder& order() { return order_; }
  dataflow::BatchRing& ring() { return *ring_; }
  dataflow::BatchRing& test_ring() { return *test_ring_; }
  scheduler::Scheduler& scheduler() { return *scheduler_; }
  const std::vector<std::unique_ptr<learners::LearnerPool>>& pools() const { return pools_; }
  // Null if no layer is split over devices.
  engine::ExchangeGroup* exchange() const { return places_.front().group.get(); }

  // Changes the number of learners on each device, as jobs::Session does. Surplus learners stay allocated until the
  // next call.
  void resize(const std::vector<int>& learners) {
    for (std::size_t d = 0; d < learners.size(); ++d) pools_[d]->keep(learners[d]);
    for (std::size_t d = 0; d < learners.size(); ++d) pools_[d]->prepare(learners[d]);
    scheduler_->resize(learners);
  }

  // Runs `iterations` iterations (scheduler::Scheduler) and waits for them. An iteration is a round for sma and ea_sgd,
  // and a single step for other schemes.
  scheduler::Progress run(int iterations) {
    scheduler::Progress progress = scheduler_->advance(*ring_, iterations);
    progress.add(scheduler_->drain());
    return progress;
  }

 private:
  static std::unique_ptr<dataflow::Dataset> make_data(const RigOptions& options) {
    if (options.data) return options.data();
    auto images = std::make_unique<MadeUpImages>(options.examples, options.image, options.classes);
    if (options.input == RigInput::kFloats) return images;
    return as_bytes(*images);
  }

  // Without `iteration`: a ring that is read from the first batch to the last, with as few slots as possible.
  std::unique_ptr<dataflow::BatchRing> make_ring(const RigOptions& options, dataflow::BatchOrder& order, int learners,
                                                 std::optional<int> iteration) {
    const bool is_cached = options.input == RigInput::kResident;
    int slots = scheduler::pass_ring_slots(learners, order.batches_per_epoch(), 1);
    if (iteration) {
      const std::int64_t batch_bytes = options.batch * options.image.elements() * std::int64_t{sizeof(float)};
      slots = scheduler::training_ring_slots(learners, *iteration, within_bound_,
                                             is_cached ? scheduler::index_ring_slots(order.batches_per_epoch())
                                                       : scheduler::image_ring_slots(batch_bytes));
    }
    if (is_cached) return std::make_unique<dataflow::BatchRing>(order, *devices_[0], host_pool_, slots);
    return std::make_unique<dataflow::BatchRing>(*data_, order, *devices_[0], host_pool_, slots);
  }

  int within_bound_ = 0;
  engine::process::World alone_;
  std::unique_ptr<dataflow::Dataset> data_;
  engine::host::Pool host_pool_;
  std::vector<std::unique_ptr<engine::Device>> devices_;
  std::vector<dataflow::CachedData> resident_;  // by device, or none
  dataflow::ShuffledOrder order_;
  RenumberedOrder training_order_;
  dataflow::FirstBatches statistics_order_;
  dataflow::SequentialOrder test_order_;
  std::unique_ptr<dataflow::BatchRing> ring_;
  std::unique_ptr<dataflow::BatchRing> test_ring_;
  std::unique_ptr<dataflow::BatchRing> statistics_ring_;
  std::unique_ptr<engine::Collective> collective_;
  std::vector<engine::ExchangeMember> places_;  // by device
  std::vector<std::unique_ptr<learners::LearnerPool>> pools_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

// Two disjoint CPU devices, if this machine has two cores.
inline std::vector<std::string> two_devices(const std::vector<int>& allowed_cores) {
  if (allowed_cores.size() < 2) return {};
  return {"cpu:" + std::to_string(allowed_cores[0]), "cpu:" + std::to_string(allowed_cores[1])};
}

}  // namespace arbalest::tests
