// The arithmetic of data-parallel and split training, and what `arbalest inspect --links` makes of it. The expected
// numbers are worked out by hand.
#include <algorithm>

#include "report/inspection/parallelism_report.h"
#include "tests/jobs/job_text.h"
#include "tests/support/catch.h"
#include "train/parallelism/layer_costs.h"
#include "train/parallelism/parallelism_costs.h"
#include "train/parallelism/speeds.h"

namespace arbalest::jobs {

using dataflow::DenseSplit;

namespace {

// A dense layer without a bias.
LayerSizes dense(std::int64_t inputs, std::int64_t outputs) {
  return {.name = "dense",
          .kind = "dense",
          .inputs = inputs,
          .outputs = outputs,
          .parameters = inputs * outputs,
          .is_dense = true};
}

LayerCosts costs_of(const LayerSizes& layer, std::int64_t batch_size, const AssumedDevices& devices) {
  return layer_costs(std::span(&layer, 1), batch_size, devices).front();
}

AssumedDevices with_link(int count, std::string_view link) {
  return {.count = count, .link = parse_link("--links", link)};
}

const LayerParallelism& layer_of(const ParallelismCosts& costs, const std::string& name) {
  const auto found = std::ranges::find_if(costs.layers, [&](const auto& layer) { return layer.sizes.name == name; });
  REQUIRE(found != costs.layers.end());
  return *found;
}

std::string refused(const std::string& text) {
  try {
    parse_link("--links", text);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kUsage);
    return error.what();
  }
  FAIL("accepted: " << text);
  return "";
}

}  // namespace

TEST_CASE("parallelism: LeNet's first dense layer, 800 x 500 with a bias, on 4 devices with 32 examples each") {
  const ParallelismCosts costs = parallelism_costs(parse(std::string(kGoodJob)), with_link(4, "12GB/s,5us"));
  CHECK(costs.batch_size == 32);
  REQUIRE(costs.layers.size() == 4);
  const LayerParallelism& layer = layer_of(costs, "dense1");
  CHECK(layer.sizes.inputs == 800);
  CHECK(layer.sizes.outputs == 500);
  CHECK(layer.sizes.parameters == 400'500);
  CHECK(layer.costs.data.bytes == 2'403'000);  // 2 x 3/4 x 4 x 400,500
  CHECK(layer.costs.data.seconds == Approx(6 * 5e-6 + 2'403'000 / 12e9));
  REQUIRE(layer.costs.split);
  CHECK(layer.costs.split->bytes == 537'600);  // 3 x 4 x 32 x 2 x (800 / 4 + 500)
  CHECK(layer.costs.split->seconds == Approx(12 * 5e-6 + 537'600 / 12e9));
  CHECK(layer.costs.split_by == DenseSplit::kRows);  // columns: 710,400 bytes
  CHECK(layer.costs.better == Parallelism::kSplit);  // b (n + P m) = 89,600 and n m = 400,000
  // Four devices do not divide 10 units.
  CHECK(layer_of(costs, "logits").costs.split_by == DenseSplit::kRows);
  CHECK(layer_of(costs, "logits").costs.split->bytes == 103'680);  // 3 x 4 x 32 x 2 x (500 / 4 + 10)
  // The convolutions send their parameters. Their 20 x 24 x 24 and 50 x 8 x 8 outputs are never split.
  CHECK(layer_of(costs, "conv1").costs.data.bytes == 2 * 3 * 520);
  CHECK(layer_of(costs, "conv2").costs.data.bytes == 2 * 3 * 25'050);
  CHECK_FALSE(layer_of(costs, "conv2").costs.split);
  CHECK(layer_of(costs, "conv2").costs.better == Parallelism::kData);
  CHECK(costs.data_parallel.traffic.bytes == 2 * 3 * 431'080);
  CHECK(costs.data_parallel.traffic.seconds == Approx(4 * 6 * 5e-6 + 2 * 3 * 431'080 / 12e9));
}

TEST_CASE("parallelism: with larger mini-batches LeNet's first dense layer is better data-parallel") {
  const std::string job = changed("batch_size: 32", "batch_size: 256");
  const ParallelismCosts costs = parallelism_costs(parse(job), with_link(4, "12GB/s,5us"));
  const LayerParallelism& layer = layer_of(costs, "dense1");
  CHECK(layer.costs.split->bytes == 8 * 537'600);
  CHECK(layer.costs.data.bytes == 2'403'000);
  CHECK(layer.costs.better == Parallelism::kData);  // 716,800 and 400,000
}

TEST_CASE("parallelism: AlexNet's fc6, 9,216 x 4,096, is better split by rows than with fc7 as a pair") {
  const ParallelismCosts costs =
      parallelism_costs(parse("name: 'job' model { zoo { alexnet {} } } learning_rate { base: 0.01 }\n"
                              "data { npy { directory: 'd' classes: 1000 channels: 3 height: 224 width: 224 } }\n"
                              "training { batch_size: 128 max_epochs: 10 }"),
                        with_link(4, "12GB/s,5us"));
  const LayerParallelism& fc6 = layer_of(costs, "classifier.1");
  CHECK(fc6.sizes.parameters == 9216 * 4096 + 4096);
  CHECK(fc6.costs.data.bytes == 226'516'992);   // 2 x 3/4 x 4 x 37,752,832
  CHECK(fc6.costs.split->bytes == 19'660'800);  // 3 x 4 x 128 x 2 x (9,216 / 4 + 4,096)
  CHECK(fc6.costs.split_by == DenseSplit::kRows);
  CHECK(fc6.costs.better == Parallelism::kSplit);
  for (const LayerParallelism& layer : costs.layers) {  // as in "One weird trick"
    CHECK((layer.costs.better == Parallelism::kSplit) == (layer.sizes.kind == "dense"));
  }
  REQUIRE(costs.pairs.size() == 2);
  CHECK(costs.pairs[0].by_columns == "classifier.1");
  CHECK(costs.pairs[0].by_rows == "classifier.4");
  const Traffic& pair = costs.pairs[0].split;
  CHECK(pair.bytes == 40'894'464);  // fc7 has as many outputs as fc6, and what lies between them stays
  CHECK(pair.seconds == Approx(12 * 5e-6 + 40'894'464 / 12e9));
  CHECK(costs.pairs[0].better == Parallelism::kEachAlone);  // 19,660,800 and 15,728,640 bytes
  CHECK_THAT(to_text(costs), ContainsSubstring("3.468  each alone"));
  CHECK(to_json(costs)["pairs"][0]["better"] == "each_alone");
  CHECK(costs.pairs[1].better == Parallelism::kSplit);
  CHECK(costs.pairs[1].split.bytes == 15'654'912);  // 3 x 4 x 128 x 2 x (4,096 + 1,000)
  // The convolutions are data-parallel, fc6 is split alone, and fc7 and fc8 are a pair.
  CHECK(costs.each_the_better.traffic.bytes == 14'818'176 + 19'660'800 + 15'654'912);
}

TEST_CASE("parallelism: 4,096 x 256 on 4 devices with 128 examples each is better split by rows") {
  const LayerCosts costs = costs_of(dense(4096, 256), 128, with_link(4, "12GB/s,5us"));
  CHECK(costs.data.bytes == 6'291'456);
  CHECK(costs.split->bytes == 3'932'160);  // 3 x 4 x 128 x 2 x (4,096 / 4 + 256)
  CHECK(costs.split_by == DenseSplit::kRows);
  CHECK(costs.better == Parallelism::kSplit);
  const LayerCosts transposed = costs_of(dense(256, 4096), 128, with_link(4, "12GB/s,5us"));
  CHECK(transposed.split->bytes == costs.split->bytes);
  CHECK(transposed.split_by == DenseSplit::kColumns);
}

TEST_CASE("parallelism: a layer sends less when it is split just if b (max(n, m) + P min(n, m)) < n m") {
  const AssumedDevices link_only = with_link(4, "1GB/s,0us");
  for (const std::int64_t inputs : {16, 100, 1000, 9216}) {
    for (const std::int64_t outputs : {4, 500, 4096}) {
      for (const std::int64_t batch_size : {1, 8, 32, 500}) {
        CAPTURE(inputs, outputs, batch_size);
        const LayerCosts costs = costs_of(dense(inputs, outputs), batch_size, link_only);
        const std::int64_t sent = batch_size * (std::max(inputs, outputs) + 4 * std::min(inputs, outputs));
        CHECK((costs.better == Parallelism::kSplit) == (sent < inputs * outputs));
        CHECK(costs.split_by == (outputs < inputs ? DenseSplit::kRows : DenseSplit::kColumns));
      }
    }
  }
}

TEST_CASE("parallelism: a layer is split only in ways that leave no rest") {
  const AssumedDevices devices = with_link(4, "1GB/s,5us");
  CHECK(costs_of(dense(1000, 10), 32, devices).split_by == DenseSplit::kRows);
  CHECK(costs_of(dense(10, 1000), 32, devices).split_by == DenseSplit::kColumns);
  CHECK(costs_of(dense(1001, 500), 32, devices).split_by == DenseSplit::kColumns);  // rows would send less
  const LayerCosts neither = costs_of(dense(1001, 501), 1, devices);
  CHECK_FALSE(neither.split);
  CHECK(neither.split_by == DenseSplit::kNone);
  CHECK(neither.better == Parallelism::kData);
  CHECK(split_pair_traffic(dense(1001, 500), dense(500, 7), 32, devices));
  CHECK_FALSE(split_pair_traffic(dense(1000, 501), dense(501, 8), 32, devices));
  LayerSizes frozen = dense(500, 8);
  frozen.parameters = 0;
  CHECK_FALSE(split_pair_traffic(dense(1000, 500), frozen, 32, devices));
}

TEST_CASE("parallelism: traffic grows with the devices, and that of split layers with the mini-batch") {
  const LayerSizes layer = dense(960, 480);
  LayerCosts before = costs_of(layer, 32, with_link(2, "1GB/s,5us"));
  for (int devices = 3; devices <= 64; ++devices) {
    if (layer.outputs % devices != 0) continue;
    const LayerCosts costs = costs_of(layer, 32, with_link(devices, "1GB/s,5us"));
    CHECK(costs.data.bytes > before.data.bytes);
    CHECK(costs.data.bytes < 2 * 4 * layer.parameters);  // its limit
    CHECK(costs.data.seconds > before.data.seconds);
    CHECK(costs.split->bytes > before.split->bytes);
    CHECK(costs.split->seconds > before.split->seconds);
    before = costs;
  }
  const AssumedDevices devices = with_link(4, "1GB/s,5us");
  before = costs_of(layer, 1, devices);
  for (std::int64_t batch_size = 2; batch_size <= 256; batch_size *= 2) {
    const LayerCosts costs = costs_of(layer, batch_size, devices);
    CHECK(costs.data.bytes == before.data.bytes);
    CHECK(costs.data.seconds == before.data.seconds);
    CHECK(costs.split->bytes == 2 * before.split->bytes);
    CHECK(costs.split->seconds > before.split->seconds);
    before = costs;
  }
}

TEST_CASE("parallelism: Dettmers' numbers, where they are right") {
  // 1,000 x 1,000 floats are 4 MB, which take 0.8 ms over 40 Gbit/s: his 0.75 ms counts bytes and bits in powers of
  // two. Two devices send the matrix once, four devices one and a half times.
  const LayerCosts two = costs_of(dense(1000, 1000), 128, with_link(2, "40Gbit/s,0us"));
  CHECK(two.data.bytes == 4'000'000);
  CHECK(two.data.seconds == Approx(0.8e-3));
  CHECK(costs_of(dense(1000, 1000), 128, with_link(4, "40Gbit/s,0us")).data.seconds == Approx(1.2e-3));
  const Link gibi = parse_link("--links", "5GiB/s,0us");
  CHECK(4e6 / gibi.bytes_per_second == Approx(0.745e-3).epsilon(1e-3));
  // 1,000 x 500, 128 examples on two devices, 64 each. Gathers alone would send 768,000 bytes.
  const LayerCosts example = costs_of(dense(1000, 500), 64, with_link(2, "40Gbit/s,0us"));
  CHECK(example.data.bytes == 2'000'000);  // half of 500,000 floats as addends, half as sums
  CHECK(example.split->bytes == 512'000);  // 4 x 64 x 2 x (1,000 / 2 + 500)
  CHECK(example.split_by == DenseSplit::kRows);
  CHECK(example.better == Parallelism::kSplit);
}

TEST_CASE("parallelism: the first layer needs no gradient of its inputs, and a frozen layer sends nothing") {
  LayerSizes first = dense(1000, 500);
  first.has_input_gradient = false;
  CHECK(costs_of(first, 64, with_link(2, "1GB/s,0us")).split->bytes == 4 * 64 * (1000 / 2 + 2 * 500));
  LayerSizes frozen = dense(1000, 500);
  frozen.parameters = 0;
  const LayerCosts costs = costs_of(frozen, 64, with_link(2, "1GB/s,5us"));
  CHECK(costs.data.bytes == 0);
  CHECK(costs.data.seconds == 0.0);
  CHECK_FALSE(costs.split);

  const std::string mlp = with_model("model { zoo { mlp { hidden: 64 hidden: 32 } } }");
  const std::vector<LayerSizes> sizes = layer_sizes(*parse(mlp).graph, 32);
  const auto first_dense = std::ranges::find_if(sizes, &LayerSizes::is_dense);
  REQUIRE(first_dense != sizes.end());
  CHECK_FALSE(first_dense->has_input_gradient);
  CHECK(std::ranges::count_if(sizes, [](const auto& layer) { return layer.is_dense && layer.has_input_gradient; }) ==
        2);
  const ParallelismCosts thawed = parallelism_costs(parse(mlp), with_link(2, "1GB/s,0us"));
  const JobOptions job = parse(mlp, {"training.freeze='" + first_dense->name + "'"});
  CHECK(parallelism_costs(job, with_link(2, "1GB/s,0us")).layers.size() == thawed.layers.size() - 1);
}

TEST_CASE("parallelism: a gradient that is sent while earlier layers compute keeps nobody waiting") {
  // The backward pass takes 2 s for the second layer and 1 s for the first one. 4 N bytes at 8 bytes/s: N / 2 seconds.
  LayerSizes first = dense(1, 1);
  first.forward_flops = 5;
  first.backward_flops = 10;
  LayerSizes second = dense(2, 1);
  second.parameters = 1;
  second.backward_flops = 20;
  AssumedDevices devices = with_link(2, "8B/s,0s");
  CHECK_FALSE(layer_costs(std::vector{first, second}, 1, devices).front().hidden_seconds);
  devices.flops_per_second = 10.0;
  std::vector<LayerCosts> costs = layer_costs(std::vector{first, second}, 1, devices);
  CHECK(costs[0].compute_seconds == Approx(1.5));
  CHECK(costs[1].compute_seconds == Approx(2.0));
  CHECK(costs[1].hidden_seconds == Approx(0.5));  // sent from 2 to 2.5 s, and the backward pass ends at 3 s
  CHECK(waiting_seconds(costs[1]) == Approx(0.0));
  CHECK(costs[0].hidden_seconds == Approx(0.0));  // ready when the backward pass ends
  CHECK(waiting_seconds(costs[0]) == Approx(0.5));

  second.parameters = 6;  // 3 s, of which one is hidden
  costs = layer_costs(std::vector{first, second}, 1, devices);
  CHECK(costs[1].hidden_seconds == Approx(1.0));
  CHECK(waiting_seconds(costs[1]) == Approx(2.0));

  second.parameters = 5;  // 2.5 s, of which one is hidden; split by rows: 4 x 2 x (2 / 2 + 1) bytes in 2 s
  CHECK(layer_costs(std::vector{first, second}, 1, devices)[1].better == Parallelism::kData);
  devices.flops_per_second.reset();
  CHECK(layer_costs(std::vector{first, second}, 1, devices)[1].better == Parallelism::kSplit);
}

TEST_CASE("parallelism: gradients are sent one after the other") {
  // Each layer takes 1 s. The third one's gradient is sent from 1 to 3 s, so the second one's waits for the link until
  // the backward pass ends.
  std::vector<LayerSizes> layers(3, dense(1, 1));
  for (LayerSizes& layer : layers) layer.backward_flops = 10;
  layers[2].parameters = 4;
  AssumedDevices devices = with_link(2, "8B/s,0s");
  devices.flops_per_second = 10.0;
  const std::vector<LayerCosts> costs = layer_costs(layers, 1, devices);
  CHECK(costs[2].hidden_seconds == Approx(2.0));
  CHECK(costs[1].hidden_seconds == Approx(0.0));
}

TEST_CASE("parallelism: a layer without parameters does not delay the gradients of others") {
  LayerSizes first = dense(1, 1);
  first.backward_flops = 10;
  LayerSizes pooling{.name = "pool", .kind = "max_pool", .inputs = 4, .outputs = 1, .backward_flops = 10};
  AssumedDevices devices = with_link(2, "8B/s,0s");
  devices.flops_per_second = 10.0;
  const std::vector<LayerCosts> costs = layer_costs(std::vector{first, pooling, dense(1, 2)}, 1, devices);
  CHECK(costs[1].data.bytes == 0);
  CHECK(costs[2].hidden_seconds == Approx(1.0));  // 1 s, sent while the pooling computes
}

TEST_CASE("parallelism: pairs are dense layers with elementwise layers between them") {
  const AssumedDevices devices = with_link(4, "12GB/s,5us");
  const ParallelismCosts lenet = parallelism_costs(parse(std::string(kGoodJob)), devices);
  REQUIRE(lenet.pairs.size() == 1);
  CHECK(lenet.pairs[0].by_columns == "dense1");
  CHECK(lenet.pairs[0].by_rows == "logits");
  CHECK(lenet.pairs[0].data.bytes == 2 * 3 * (400'500 + 5'010));
  CHECK(lenet.pairs[0].split.bytes == 3 * 4 * 32 * 2 * (800 + 10));
  CHECK(lenet.pairs[0].split.seconds == Approx(12 * 5e-6 + 622'080 / 12e9));
  CHECK(lenet.pairs[0].better == Parallelism::kSplit);
  // The pair is better than dense1 split alone and logits data-parallel.
  CHECK(lenet.each_the_better.traffic.bytes == 2 * 3 * (520 + 25'050) + 622'080);
  // Three devices do not divide the 500 units between the layers, nor dense1's 800 inputs.
  const ParallelismCosts three = parallelism_costs(parse(std::string(kGoodJob)), with_link(3, "12GB/s,5us"));
  CHECK(three.pairs.empty());
  CHECK_FALSE(layer_of(three, "dense1").costs.split);
  CHECK(lenet.each_the_better.waiting_seconds == lenet.each_the_better.traffic.seconds);
  const ParallelismCosts slow = parallelism_costs(parse(std::string(kGoodJob)), with_link(4, "12GB/s,100us"));
  CHECK(slow.each_the_better.traffic.bytes < slow.data_parallel.traffic.bytes);  // a pair has fewer messages, too
  const ParallelismCosts large =
      parallelism_costs(parse(changed("batch_size: 32", "batch_size: 512")), with_link(4, "12GB/s,5us"));
  REQUIRE(large.pairs[0].better == Parallelism::kData);
  CHECK(large.each_the_better.traffic.bytes == large.data_parallel.traffic.bytes);
  const ParallelismCosts logistic =
      parallelism_costs(parse(with_model("model { zoo { logistic_regression {} } }")), devices);
  CHECK(logistic.pairs.empty());
  // A dense layer with two readers is no part of a pair, and a batch norm lies between the other two.
  const ParallelismCosts branches = parallelism_costs(
      parse(with_model("model { layers { name: 'a' input: 'image' dense { units: 10 } }\n"
                       "layers { name: 'b' input: 'a' dense { units: 10 } }\n"
                       "layers { name: 'n' input: 'b' batch_norm {} }\n"
                       "layers { name: 'c' input: 'n' dense { units: 10 } }\n"
                       "layers { name: 's' input: 'a' input: 'c' add {} }\n"
                       "layers { name: 'loss' input: 's' input: 'label' softmax_cross_entropy {} } }")),
      devices);
  CHECK(branches.pairs.empty());
}

TEST_CASE("parallelism: the text has the numbers of the JSON") {
  ParallelismCosts costs = parallelism_costs(parse(std::string(kGoodJob)), with_link(4, "12GB/s,5us"));
  const std::string text = to_text(costs);
  CHECK_THAT(text, ContainsSubstring("4 devices with 32 examples each; a device sends 12 GB/s"));
  CHECK_THAT(text, ContainsSubstring("2,403,000") && ContainsSubstring("0.230") && ContainsSubstring("rows") &&
                       ContainsSubstring("537,600") && ContainsSubstring("0.105"));
  CHECK_THAT(text, !ContainsSubstring("hidden"));
  nlohmann::ordered_json json = to_json(costs);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"devices", "batch_size", "link", "flops_per_second", "layers", "pairs",
                                         "data_parallel", "each_the_better"});
  CHECK(json["devices"] == 4);
  CHECK(json["batch_size"] == 32);
  CHECK(json["link"]["bytes_per_second"] == 12e9);
  CHECK(json["link"]["latency_seconds"] == 5e-6);
  CHECK(json["flops_per_second"].is_null());
  REQUIRE(json["layers"].size() == 4);
  CHECK(json["layers"][0]["name"] == "conv1");
  CHECK(json["layers"][0]["inputs"] == 784);
  CHECK(json["layers"][0]["outputs"] == 20 * 24 * 24);
  CHECK(json["layers"][0]["split"].is_null());
  CHECK(json["layers"][0]["compute_seconds"].is_null());
  CHECK(json["layers"][0]["better"] == "data_parallel");
  CHECK(json["layers"][2]["data_parallel"]["bytes"] == 2'403'000);
  CHECK(json["layers"][2]["data_parallel"]["hidden_seconds"].is_null());
  CHECK(json["layers"][2]["split"]["bytes"] == 537'600);
  CHECK(json["layers"][2]["split"]["by"] == "rows");
  CHECK(json["layers"][2]["better"] == "split");
  CHECK(json["pairs"][0]["split_by_columns"] == "dense1");
  CHECK(json["pairs"][0]["data_parallel"]["bytes"] == 2'433'060);
  CHECK(json["data_parallel"]["bytes"] == 2'586'480);
  CHECK(json["each_the_better"]["bytes"] < json["data_parallel"]["bytes"]);

  costs.devices.flops_per_second = 1e12;
  costs = parallelism_costs(parse(std::string(kGoodJob)), costs.devices);
  json = to_json(costs);
  CHECK(json["flops_per_second"] == 1e12);
  CHECK(json["layers"][2]["data_parallel"]["hidden_seconds"] > 0.0);
  CHECK(json["layers"][2]["compute_seconds"] == Approx(3.0 * 32 * 500 * 1601 / 1e12));
  CHECK(json["data_parallel"]["waiting_seconds"] < json["data_parallel"]["seconds"]);
  CHECK_THAT(to_text(costs), ContainsSubstring("a message takes 5 us longer than its bytes"));
  costs.devices.link.latency_seconds = 0.02;
  CHECK_THAT(to_text(costs), ContainsSubstring("a message takes 20 ms longer than its bytes"));
  CHECK_THAT(to_text(costs), ContainsSubstring("hidden ms") && ContainsSubstring("a device computes 1000 GFLOP/s"));
}

TEST_CASE("parallelism: a job with another scheme than s_sgd gets a warning") {
  CHECK_THAT(scheme_warning(parse(std::string(kGoodJob), {"synchronization=async_sgd"})),
             ContainsSubstring("the costs are those of s_sgd") && ContainsSubstring("async_sgd sends other messages"));
  CHECK(scheme_warning(parse(std::string(kGoodJob), {"synchronization=s_sgd"})).empty());
}

TEST_CASE("speeds: links are read with their units") {
  CHECK(parse_link("--links", "12GB/s,5us").bytes_per_second == 12e9);
  CHECK(parse_link("--links", "12GB/s,5us").latency_seconds == Approx(5e-6));
  CHECK(parse_link("--links", "40Gbit/s,1.5ms").bytes_per_second == 5e9);
  CHECK(parse_link("--links", "1.5 MiB/s, 0s").bytes_per_second == 1.5 * 1024 * 1024);
  CHECK(parse_link("--links", "1e3kB/s,20ns").bytes_per_second == 1e6);
  CHECK(parse_compute_speed("--flops", "10TFLOP/s") == 1e13);
  CHECK(parse_compute_speed("--flops", "2.5 GFLOP/s") == 2.5e9);
}

TEST_CASE("speeds: a wrong link is refused with what is right") {
  CHECK_THAT(refused("12"),
             ContainsSubstring("--links: '12' is not a speed and a latency; write both, like 12GB/s,5us"));
  CHECK_THAT(refused(""), ContainsSubstring("write both, like 12GB/s,5us"));
  CHECK_THAT(refused("12,5us"), ContainsSubstring("the speed '12' has no unit; write it like 12GB/s, with one of B/s"));
  CHECK_THAT(refused("12Gb/s,5us"), ContainsSubstring("the unknown unit 'Gb/s'") && ContainsSubstring("Gbit/s"));
  CHECK_THAT(refused("12GB/s,5"),
             ContainsSubstring("the latency '5' has no unit; write it like 5us, with one of s, ms"));
  CHECK_THAT(refused("12GB/s,5min"), ContainsSubstring("the unknown unit 'min'"));
  CHECK_THAT(refused("12GB/s,5us,6"), ContainsSubstring("the unknown unit 'us,6'"));
  CHECK_THAT(refused("-12GB/s,5us"), ContainsSubstring("the speed must be positive and finite (got -12GB/s)"));
  CHECK_THAT(refused("0GB/s,5us"), ContainsSubstring("the speed must be positive and finite (got 0GB/s)"));
  CHECK_THAT(refused("1e300TB/s,5us"), ContainsSubstring("the speed must be positive and finite"));
  CHECK_THAT(refused("12GB/s,-5us"),
             ContainsSubstring("the latency must not be negative (got -5us); write it like 5us"));
  CHECK_THAT(refused("12GB/s,5s"), ContainsSubstring("a latency of 5s would make every message take a second or more; "
                                                     "links take microseconds, as in 12GB/s,5us"));
  for (const char* text : {"fastGB/s,5us", "nanGB/s,5us", "infGB/s,5us", "GB/s,5us", ",5us"}) {
    CHECK_THAT(refused(text), ContainsSubstring("is no finite number with a unit; write it like 12GB/s"));
  }
  for (const char* text : {"12GB/s,", "12GB/s,us", "12GB/s,nans"}) {
    CHECK_THAT(refused(text), ContainsSubstring("is no finite number with a unit; write it like 5us"));
  }
  CHECK_THROWS_WITH(parse_compute_speed("--flops", "10TFLOPS"),
                    ContainsSubstring("--flops: the compute speed '10TFLOPS' has the unknown unit 'TFLOPS'") &&
                        ContainsSubstring("TFLOP/s"));
  CHECK_THROWS_WITH(parse_compute_speed("--flops", "0TFLOP/s"), ContainsSubstring("must be positive and finite"));
}

}  // namespace arbalest::jobs
