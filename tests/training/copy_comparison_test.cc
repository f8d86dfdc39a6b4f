// What all devices must hold alike is compared while a run trains, and a difference ends the run with the device's
// name.
#include "sma/copy_comparison.h"

#include <cstring>
#include <utility>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "sma/outer_update.h"
#include "sma/synchronizer.h"
#include "tests/support/catch.h"
#include "tests/support/schemes.h"
#include "tests/support/skip.h"
#include "tests/support/small_training.h"
#include "tests/support/weights.h"

namespace arbalest::tests {
namespace {

// `count` devices of this machine with names of their own; the third one shares cores with the others.
std::vector<std::string> cpu_devices(std::size_t count) {
  const std::vector<int> cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("needs two cores");
  std::vector<std::string> devices = two_devices(cores);
  if (count > 2) devices.push_back(fmt::format("cpu:{},{}", cores[0], cores[1]));
  return devices;
}

RigOptions compared(const sma::Options& scheme, std::size_t devices, std::vector<int> learners = {}) {
  RigOptions options = options_on(cpu_devices(devices), learners.empty() ? std::vector<int>(devices, 1) : learners);
  options.layers = normalized_network();
  options.synchronization = scheme;
  options.compare_rounds = 1;
  return options;
}

// A link between the devices that gives rank `rank` a wrong word in one all-reduce.
class FaultyLink final : public engine::Collective {
 public:
  FaultyLink(std::unique_ptr<engine::Collective> link, std::size_t rank, int at)
      : link_(std::move(link)), rank_(rank), at_(at) {}
  int ranks() const noexcept override { return link_->ranks(); }
  void all_reduce_sum(std::span<const engine::CollectivePart> parts, std::size_t elements, const char* label) override {
    link_->all_reduce_sum(parts, elements, label);
    if (calls_++ != at_) return;
    parts[rank_].stream->copy(parts[rank_].values, &wrong_, sizeof(wrong_), "fault");
  }
  void wait(const engine::Event& event) override { link_->wait(event); }

 private:
  std::unique_ptr<engine::Collective> link_;
  std::size_t rank_;
  int at_;
  int calls_ = 0;
  float wrong_ = 0.125F;
};

std::string failure_of(TrainingRig& rig, int iterations) {
  try {
    rig.run(iterations);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDevice);
    return error.what();
  }
  return "";
}

void flip_bit(float* value, int bit) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, value, sizeof(bits));
  bits ^= 1U << bit;
  std::memcpy(value, &bits, sizeof(bits));
}

}  // namespace

TEST_CASE("the wrong devices are those that differ from more than half, and any without such a majority",
          "[comparison]") {
  using Devices = std::vector<std::size_t>;
  CHECK(sma::faulty_devices({{7}, {7}, {7}}) == Devices{});
  CHECK(sma::faulty_devices({{7}, {8}}) == Devices{0, 1});
  CHECK(sma::faulty_devices({{7}, {8}, {7}}) == Devices{1});
  CHECK(sma::faulty_devices({{7}, {8}, {9}, {7}, {7}}) == Devices{1, 2});
  CHECK(sma::faulty_devices({{7}, {8}, {9}}) == Devices{0, 1, 2});
  CHECK(sma::faulty_devices({{7}, {7}, {8}, {8}}) == Devices{0, 1, 2, 3});
  // A device whose own copies differ is wrong, whatever the others hold.
  CHECK(sma::faulty_devices({{7, 7}, {7, 8}}) == Devices{1});
  CHECK(sma::faulty_devices({{7, 8}}) == Devices{0});
  CHECK(sma::faulty_devices({{7, 7, 7}, {8}}) == Devices{0, 1});
}

TEST_CASE("equal copies pass under every scheme, and comparing them changes no byte", "[comparison]") {
  for (const sma::Options& scheme : short_schemes()) {
    for (const std::size_t devices : {2U, 3U}) {
      CAPTURE(name_of(scheme), devices);
      RigOptions options = compared(scheme, devices, devices == 2 ? std::vector<int>{2, 1} : std::vector<int>{1, 1, 2});
      options.moving_average_epochs = 0.1;
      const Trained with = train(options);
      options.compare_rounds = 0;
      check_equal(train(options), with);
    }
  }
}

TEST_CASE("a wrong word on one of three devices ends the run under every scheme, and the device is named",
          "[comparison]") {
  for (const sma::Options& scheme : short_schemes()) {
    if (scheme.scheme == sma::Scheme::kSwap) continue;  // averages only at the end
    CAPTURE(name_of(scheme));
    RigOptions options = compared(scheme, 3);
    options.around_collective = [](std::unique_ptr<engine::Collective> link) {
      return std::make_unique<FaultyLink>(std::move(link), 1, 0);
    };
    TrainingRig rig(options);
    const std::string message = failure_of(rig, 12);
    CHECK_THAT(message, ContainsSubstring("the devices' copies of the model differ: the wrong one is on '" +
                                          options.devices[1] + "' (hash ") &&
                            ContainsSubstring("after round 1 ") &&
                            ContainsSubstring("at or before mini-batch 0, where the copies were last equal"));
    CHECK(message.find("'" + options.devices[0] + "'") == std::string::npos);
  }
}

TEST_CASE("of two devices that differ both are named, with the last point where they were equal", "[comparison]") {
  RigOptions options = compared(sma::defaults_of(sma::Scheme::kSma), 2);
  options.around_collective = [](std::unique_ptr<engine::Collective> link) {
    return std::make_unique<FaultyLink>(std::move(link), 0, 4);
  };
  TrainingRig rig(options);
  CHECK_THAT(failure_of(rig, 12), ContainsSubstring("after round 5 (mini-batch 10)") &&
                                      ContainsSubstring("nothing tells which") &&
                                      ContainsSubstring("on '" + options.devices[0] + "' (hash ") &&
                                      ContainsSubstring("on '" + options.devices[1] + "' (hash ") &&
                                      ContainsSubstring("at or before mini-batch 8"));
  // Only every third round is compared, so the difference is found later.
  options.compare_rounds = 3;
  TrainingRig rarely(options);
  CHECK_THAT(failure_of(rarely, 12),
             ContainsSubstring("after round 6 (mini-batch 12)") && ContainsSubstring("at or before mini-batch 6"));
}

TEST_CASE("a bit that flips in a learner's weights under s_sgd is found, on several devices and on one",
          "[comparison]") {
  for (const std::size_t devices : {1U, 3U}) {
    CAPTURE(devices);
    RigOptions options = compared(sma::defaults_of(sma::Scheme::kSSgd), devices == 1 ? 2 : devices);
    if (devices == 1) {
      options.devices = {"cpu"};
      options.learners = {3};
    }
    TrainingRig rig(options);
    rig.run(4);
    const std::size_t flipped = devices - 1;
    // The rounding of the next update may absorb the lowest bit.
    flip_bit(rig.pools()[flipped]->learners().back()->weights() + 2, 20);
    CHECK_THAT(failure_of(rig, 3),
               ContainsSubstring("the wrong one is on '" + rig.pools()[flipped]->device().name() + "' (hash"));
  }
}

TEST_CASE("a bit that flips in one device's center between two rounds is found", "[comparison]") {
  constexpr std::int64_t kElements = 37;
  for (const std::size_t count : {2U, 3U}) {
    CAPTURE(count);
    std::vector<std::unique_ptr<engine::Device>> devices;
    for (const std::string& name : cpu_devices(count)) {
      devices.push_back(engine::open_device(engine::parse_device(name), {}));
    }
    engine::process::World alone;
    const auto collective = engine::make_collective(devices, alone);
    std::vector<engine::Device*> pointers;
    std::vector<engine::Buffer> weights;
    std::vector<sma::ReplicaVectors> replicas;
    for (const auto& device : devices) {
      pointers.push_back(device.get());
      weights.push_back(device->allocate(kElements * sizeof(float)));
      replicas.push_back({.weights = {weights.back().as<float>()}, .gradients = {weights.back().as<float>()}});
    }
    sma::SynchronizerNeeds needs{.schemes = {sma::defaults_of(sma::Scheme::kSma)},
                                 .most_learners = static_cast<int>(count)};
    needs.compares_copies = true;
    sma::Synchronizer synchronizer(needs, pointers, {.elements = kElements, .statistics = 5}, *collective, 3);
    synchronizer.set_replicas(std::move(replicas), static_cast<int>(count));
    sma::CentralModel& central = synchronizer.central();
    sma::OuterUpdate update(needs.schemes.front(), static_cast<int>(count));
    const std::vector<std::vector<engine::Event>> ready(count, std::vector<engine::Event>(1));
    const auto faulty_after_round = [&] {
      update.enqueue(central, ready, 0.1F);
      CHECK(synchronizer.compare_central());
      synchronizer.settle();
      return sma::faulty_devices(synchronizer.take_comparison());
    };
    CHECK(faulty_after_round().empty());
    // The last element is a running statistic.
    for (const std::int64_t element : {std::int64_t{0}, kElements - 1}) {
      flip_bit(central.present(1) + element, 0);
      CHECK(synchronizer.compare_central());
      synchronizer.settle();
      const auto faulty = sma::faulty_devices(synchronizer.take_comparison());
      CHECK(faulty == (count == 2 ? std::vector<std::size_t>{0, 1} : std::vector<std::size_t>{1}));
      flip_bit(central.present(1) + element, 0);
    }
    CHECK(faulty_after_round().empty());
  }
}

TEST_CASE("a difference that no round has compared is found when the state is saved and when training ends",
          "[comparison]") {
  for (const sma::Options& scheme : {sma::defaults_of(sma::Scheme::kSma), sma::defaults_of(sma::Scheme::kSSgd)}) {
    CAPTURE(name_of(scheme));
    RigOptions options = compared(scheme, 3);
    options.compare_rounds = 1000;
    options.around_collective = [](std::unique_ptr<engine::Collective> link) {
      return std::make_unique<FaultyLink>(std::move(link), 1, 4);
    };
    TrainingRig rig(options);
    rig.run(2);
    const scheduler::TrainingState sound = rig.scheduler().save();
    rig.run(6);
    const std::string expected = "the wrong one is on '" + options.devices[1] + "' (hash ";
    const std::string equal = fmt::format("at or before mini-batch {}, where", sound.batches);
    CHECK_THROWS_WITH(rig.scheduler().verify_copies(), ContainsSubstring(expected) && ContainsSubstring(equal));
    CHECK_THROWS_WITH(rig.scheduler().save(), ContainsSubstring(expected) && ContainsSubstring(equal));
  }
}

TEST_CASE("copies that differ in a saved state are found when it is restored", "[comparison]") {
  RigOptions options = compared(sma::defaults_of(sma::Scheme::kSSgd), 3);
  options.compare_rounds = 1000;
  TrainingRig rig(options);
  rig.run(2);
  scheduler::TrainingState state = rig.scheduler().save();
  const auto restore = [&] { rig.scheduler().restore(state, options.synchronization, {}, std::vector<int>{1, 1, 1}); };
  CHECK_NOTHROW(restore());
  flip_bit(&state.learners[2].weights.front().values.front(), 20);
  CHECK_THROWS_WITH(restore(), ContainsSubstring("the wrong one is on '" + options.devices[2] + "' (hash "));
}

TEST_CASE("comparing in every step at full speed finds no difference where there is none", "[comparison]") {
  RigOptions options = compared(sma::defaults_of(sma::Scheme::kSSgd), 2, {2, 2});
  options.layers = small_network();
  TrainingRig rig(options);
  rig.scheduler().advance(rig.ring(), 40);
  rig.scheduler().drain();
  CHECK(rig.scheduler().batches() == 160);
}

}  // namespace arbalest::tests
