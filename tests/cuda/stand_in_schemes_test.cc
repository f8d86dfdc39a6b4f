// Every scheme on one GPU and on two. The stand-in of CUDA's libraries can test more than a GPU: any order of streams,
// and that all GPUs call NCCL in the same order with the same sizes.
#include "tests/cuda/switching.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests {

namespace {

// Calls train() with several orders of streams on `gpus` GPUs.
template <typename Train>
void check_orders(int gpus, const Train& train_once) {
  cuda_stand_in::reset({.devices = gpus});
  const Trained expected = train_once();
  for (std::uint64_t seed = 2; seed <= 7; ++seed) {
    cuda_stand_in::reset({.devices = gpus}, seed);
    check_equal(train_once(), expected);
    cuda_stand_in::require_clean();
  }
}

}  // namespace

TEST_CASE("a GPU gives the same bytes with every scheme for any order of its streams", "[training]") {
  // In BF16 learners compute with copies of their weights. An assigned central model must also be copied there in time.
  const engine::Precision precision = GENERATE(engine::Precision::kFloat32, engine::Precision::kBFloat16);
  for (const sma::Options& scheme : short_schemes()) {
    INFO(name_of(scheme) << " in " << engine::to_string(precision));
    RigOptions options = options_on({"cuda:0"}, {3});
    options.synchronization = scheme;
    options.precision = precision;
    check_orders(1, [&] { return train(options); });
  }
}

TEST_CASE("a GPU that switches schemes gives the same bytes for any order of its streams", "[training]") {
  check_orders(1, [] { return train_through(options_on({"cuda:0"}, {}), phases_on(1, 3)); });
}

TEST_CASE("dividing the gradient into parts changes no byte on one GPU", "[training]") {
  RigOptions options = options_on({"cuda:0"}, {3});
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);  // one part
  const Trained whole = train(options);
  for (const std::int64_t bytes : {1, 128, 1024}) {
    CAPTURE(bytes);
    cuda_stand_in::reset();
    options.synchronization.bucket_bytes = bytes;
    check_equal(train(options), whole);
    cuda_stand_in::require_clean();
  }
}

}  // namespace arbalest::tests
