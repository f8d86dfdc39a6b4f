// The processes of a run, here threads, find out and decide together.
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "options/loading/load_job.h"
#include "scheduler/evaluation/batch_rows.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "train/processes/agreement.h"
#include "train/processes/device_share.h"
#include "train/processes/shared_job.h"
#include "train/processes/shared_results.h"

namespace {

using namespace arbalest;
using Catch::Matchers::StartsWith;
using engine::process::World;

const std::vector<std::string> kNothing3(3);
constexpr int kLag = 2;  // iterations until a request counts

}  // namespace

TEST_CASE("processes: results add up in order of ranks, on every rank", "[processes]") {
  std::vector<scheduler::Progress> sums(3);
  std::vector<std::vector<int>> joined(3);
  CHECK(tests::messages_of_ranks(3, [&](World& world) {
          const auto rank = static_cast<std::size_t>(world.rank());
          scheduler::Progress own{{.tasks = world.rank() + 1, .examples = 10, .sums = {{0.1 * world.rank()}}}};
          own.replica_distance = 2.5;
          sums[rank] = jobs::sum_over(world, own);
          joined[rank] = jobs::join(world, std::vector<int>(rank, world.rank()));
        }) == kNothing3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(sums[rank].tasks == 6);
    CHECK(sums[rank].examples == 30);
    CHECK(sums[rank].sums.loss() == 0.0 + 0.1 * 1 + 0.1 * 2);
    CHECK(sums[rank].replica_distance == 2.5);
    CHECK(joined[rank] == std::vector<int>{1, 2, 2});
  }
}

TEST_CASE("processes: rows of mini-batches come in the order of their numbers, on every rank", "[processes]") {
  std::vector<std::vector<int>> taken(3);
  CHECK(tests::messages_of_ranks(3, [&](World& world) {
          const int rank = world.rank();
          scheduler::BatchRows rows(world, sizeof(int), [&](scheduler::BatchRows::Row row) {
            std::memcpy(&taken[static_cast<std::size_t>(rank)].emplace_back(), row.data(), sizeof(int));
          });
          // Rank 2 has one mini-batch less than the others.
          for (int number = rank; number < 8; number += 3) {
            const int value = 100 + number;
            rows.add(static_cast<std::uint64_t>(number), std::as_bytes(std::span(&value, 1)));
          }
          rows.finish();
        }) == kNothing3);
  for (const std::vector<int>& values : taken) {
    CHECK(values == std::vector<int>{100, 101, 102, 103, 104, 105, 106, 107});
  }
}

TEST_CASE("processes: all throw the error of the first rank that fails, with its name", "[processes]") {
  const std::vector<std::string> thrown = tests::messages_of_ranks(3, [](World& world) {
    jobs::together(world, [] {});
    jobs::together(world, [&] {
      if (world.rank() > 0) engine::fail(engine::ErrorKind::kData, "no data for rank {}", world.rank());
    });
  });
  for (const std::string& text : thrown) CHECK(text == "rank 1 on host here: no data for rank 1");
  // The kind comes along.
  std::vector<engine::ErrorKind> kinds(2);
  tests::messages_of_ranks(2, [&](World& world) {
    try {
      jobs::together(world, [&] {
        if (world.rank() == 0) engine::fail(engine::ErrorKind::kOutOfMemory, "no memory");
      });
    } catch (const jobs::SharedError& error) {
      kinds[static_cast<std::size_t>(world.rank())] = error.kind();
    }
  });
  CHECK(kinds == std::vector<engine::ErrorKind>(2, engine::ErrorKind::kOutOfMemory));
}

TEST_CASE("processes: a divergence of one rank is thrown by all, with its loss", "[processes]") {
  std::vector<double> losses(2);
  std::vector<std::string> texts(2);
  tests::messages_of_ranks(2, [&](World& world) {
    jobs::throw_divergence(world, std::nullopt);
    std::optional<scheduler::Diverged> own;
    if (world.rank() == 1) own.emplace("its loss is 7", 7.0);
    try {
      jobs::throw_divergence(world, own);
    } catch (const scheduler::Diverged& error) {
      texts[static_cast<std::size_t>(world.rank())] = error.what();
      losses[static_cast<std::size_t>(world.rank())] = error.loss();
    }
  });
  CHECK(losses == std::vector<double>{7.0, 7.0});
  CHECK(texts == std::vector<std::string>(2, "rank 1 on host here: its loss is 7"));
}

TEST_CASE("processes: a request of one rank is known to all at the same iteration, and once", "[processes]") {
  std::vector<std::vector<int>> signals(3);
  CHECK(tests::messages_of_ranks(3, [&](World& world) {
          jobs::Agreement agreement(world);
          auto& own = signals[static_cast<std::size_t>(world.rank())];
          for (int iteration = 0; iteration < 6; ++iteration) {
            jobs::Requests requests;
            if (iteration >= 1 && world.rank() == 1) requests.stop_signal = 15;
            if (iteration >= 2 && world.rank() == 2) requests.stop_signal = 2;
            own.push_back(agreement.after_iteration(requests, kLag).stop_signal);
          }
          agreement.forget();
          own.push_back(agreement.after_iteration({}, kLag).stop_signal);
          own.push_back(agreement.now({.save = world.rank() == 2}).save ? 1 : 0);
        }) == kNothing3);
  // Iterations 1 and 2 are answered two iterations later; of two signals the one with the smaller number counts.
  for (const auto& own : signals) CHECK(own == std::vector<int>{0, 0, 0, 15, 2, 2, 0, 1});
}

TEST_CASE("processes: they are prepared when all are, and lack memory if one does", "[processes]") {
  std::vector<std::string> answers(3);
  CHECK(tests::messages_of_ranks(3, [&](World& world) {
          const int rank = world.rank();
          jobs::Agreement agreement(world);
          for (int iteration = 0; iteration < 6; ++iteration) {
            jobs::Requests requests;
            requests.has_change = rank == 0 && iteration == 0;
            requests.is_prepared = iteration >= rank;
            requests.lacks_memory = rank == 1 && iteration >= 1;
            const jobs::Requests answer = agreement.after_iteration(requests, kLag);
            std::string& text = answers[static_cast<std::size_t>(rank)];
            text += answer.has_change ? "c" : "-";
            text += answer.is_prepared ? "p" : "-";
            text += answer.lacks_memory ? "m " : "- ";
          }
        }) == kNothing3);
  for (const std::string& text : answers) CHECK(text == "--- --- c-- --m -pm -pm ");
}

TEST_CASE("processes: it is known two iterations later that no process was writing", "[processes]") {
  std::vector<std::vector<int>> written(3);
  CHECK(tests::messages_of_ranks(3, [&](World& world) {
          jobs::Agreement agreement(world);
          for (int iteration = 0; iteration < 6; ++iteration) {
            const jobs::Requests answer =
                agreement.after_iteration({.is_writing = world.rank() == 1 && iteration < 2}, kLag);
            written[static_cast<std::size_t>(world.rank())].push_back(answer.all_have_written ? 1 : 0);
          }
          agreement.forget();
        }) == kNothing3);
  for (const auto& own : written) CHECK(own == std::vector<int>{0, 0, 0, 0, 1, 1});
}

TEST_CASE("processes: a single process decides at once", "[processes]") {
  World alone;
  jobs::Agreement agreement(alone);
  CHECK(agreement.after_iteration({.stop_signal = 15}, kLag).stop_signal == 15);
  CHECK(agreement.now({.time_is_over = true}).time_is_over);
  CHECK(jobs::join(alone, {1, 2}) == std::vector<int>{1, 2});
  CHECK_THROWS_AS(jobs::throw_divergence(alone, scheduler::Diverged("x")), scheduler::Diverged);
}

TEST_CASE("processes: the cores of a machine, or its named devices, are divided among its processes", "[processes]") {
  const int cores = engine::host::usable_cores();
  std::vector<std::vector<int>> shares(2);
  std::vector<std::string> named(2);
  std::vector<std::string> problems(2);
  const std::vector<std::string> thrown = tests::messages_of_ranks(2, [&](World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const jobs::LauncherShares none = jobs::shares_of_launcher(world);
    tests::expect(!none.cores && !none.gpus, "the same cores and GPUs for both");
    shares[rank] = jobs::share_of_devices({engine::parse_device("cpu")}, world, none).devices.front().cores;
    const jobs::DeviceShare bound = jobs::share_of_devices({engine::parse_device("cpu")}, world, {.cores = true});
    tests::expect(bound.devices.front().cores.empty(), "the cores that the launcher has given");
    const std::vector<engine::DeviceSpec> gpus = {{"cuda:0", {}, 0}, {"cuda:1", {}, 1}};
    named[rank] = jobs::share_of_devices(gpus, world, none).devices.front().name;
    tests::expect(jobs::share_of_devices(gpus, world, {.gpus = true}).devices.size() == 2, "all GPUs it sees");
    problems[rank] = jobs::share_of_devices({{"cuda:0", {}, 0}}, world, none).problem;
  });
  CHECK(thrown == std::vector<std::string>(2));
  CHECK(static_cast<int>(shares[0].size()) == std::max(1, cores / 2));
  CHECK(shares[0].size() == shares[1].size());
  if (cores > 1) CHECK(shares[0].back() < shares[1].front());
  CHECK(named == std::vector<std::string>{"cuda:0", "cuda:1"});
  for (const std::string& text : problems) {
    CHECK_THAT(text, ContainsSubstring("the 2 processes on host here cannot share the device of the job (cuda:0)"));
  }
}

TEST_CASE("processes: devices that cannot be divided are named where they stand: in the file, or in --set",
          "[processes]") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  const std::string core = fmt::format("cpu:{}", engine::host::allowed_cores().front());
  const std::string problem = fmt::format("cannot share the device of the job ({}) equally", core);
  const auto refusals = [&](const std::string& devices, const std::vector<std::string>& settings,
                            engine::ErrorKind kind) {
    tests::write_text(
        path, "model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 }\n" + devices);
    return tests::messages_of_ranks(2, [&](World& world) {
      try {
        jobs::load_shared_job(world, path, settings);
      } catch (const engine::Error& error) {
        tests::expect(error.kind() == kind, "the kind of the error");
        throw;
      }
    });
  };
  const std::string written = fmt::format("devices: \"{}\"\n", core);
  for (const std::string& thrown : refusals(written, {}, engine::ErrorKind::kInvalidJob)) {
    CHECK_THAT(thrown, ContainsSubstring(path + ":2:1: error: the 2 processes on host here " + problem) &&
                           ContainsSubstring(written));
  }
  const std::string setting = fmt::format("devices=[\"{}\"]", core);
  for (const std::string& devices : {std::string(), std::string("devices: \"cpu\"\n")}) {
    for (const std::string& thrown : refusals(devices, {setting}, engine::ErrorKind::kUsage)) {
      CHECK_THAT(thrown, StartsWith("--set " + setting + ": error: ") && ContainsSubstring(problem));
    }
  }
}

TEST_CASE("processes: all get the job of rank 0, each with its devices", "[processes]") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  tests::write_text(path, R"(
model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 }
processes { peer_timeout_seconds: 7 all_reduce: LIBRARY } devices: "cpu"
)");
  std::vector<jobs::JobOptions> found(2);
  const std::vector<std::string> settings = {"training.batch_size=5"};
  CHECK(tests::messages_of_ranks(2, [&](World& world) {
          const bool knows_it = world.rank() == 0;  // the file may be on one host only
          found[static_cast<std::size_t>(world.rank())] =
              jobs::load_shared_job(world, knows_it ? path : "elsewhere.txtpb", settings);
        }) == std::vector<std::string>(2));
  for (const jobs::JobOptions& job : found) {
    CHECK(job.name == "job");
    CHECK(job.training.batch_size == 5);
    CHECK(job.processes.peer_timeout_seconds == 7.0);
    CHECK(job.processes.all_reduce == engine::process::AllReduceMethod::kLibrary);
    CHECK(job.devices.size() == 1);
  }
  if (engine::host::usable_cores() > 1) CHECK(found[0].devices.front().name != found[1].devices.front().name);
}

TEST_CASE("processes: the warning of a high momentum counts the learners of all", "[processes]") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  tests::write_text(path, R"(
model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 } devices: "cpu"
optimizer { sgd { momentum: 0.9 } } synchronization { async_sgd { scale_by_staleness: false } }
learners { per_device { fixed: 2 } }
)");
  std::vector<std::vector<std::string>> warnings(2);
  CHECK(tests::messages_of_ranks(2, [&](World& world) {
          warnings[static_cast<std::size_t>(world.rank())] = jobs::load_shared_job(world, path, {}).warnings;
        }) == std::vector<std::string>(2));
  for (const std::vector<std::string>& of_rank : warnings) {
    CHECK(std::ranges::count_if(of_rank, [](const std::string& text) {
            return text.find("4 learners that push to a server without waiting") != std::string::npos;
          }) == 1);
  }
}

TEST_CASE("processes: fields without an effect are those of one learner in all processes, and are named by place",
          "[processes]") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  tests::write_text(
      path,
      "model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 }\n"
      "synchronization { async_sgd { staleness: 2 } } devices: 'cpu' learners { per_device { fixed: 1 } }");
  const std::string idle = path + ":2:31: synchronization.async_sgd.staleness: staleness has no effect";
  const auto count = [&](const std::vector<std::string>& warnings) {
    return std::ranges::count_if(warnings, [&](const std::string& text) { return text.starts_with(idle); });
  };
  CHECK(count(jobs::load_job(path).warnings) == 1);
  std::vector<std::ptrdiff_t> counts(2, -1);
  CHECK(tests::messages_of_ranks(2, [&](World& world) {
          counts[static_cast<std::size_t>(world.rank())] = count(jobs::load_shared_job(world, path, {}).warnings);
        }) == std::vector<std::string>(2));
  CHECK(counts == std::vector<std::ptrdiff_t>{0, 0});

  // So are those of a switch that trains one learner in each process.
  tests::write_text(path,
                    "model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 }\n"
                    "synchronization { s_sgd {} switch { at_epoch: 2 learners: 1 async_sgd { staleness: 2 } } }\n"
                    "devices: 'cpu' learners { per_device { fixed: 2 } }");
  std::vector<std::string> texts(2);
  CHECK(tests::messages_of_ranks(2, [&](World& world) {
          for (const std::string& text : jobs::load_shared_job(world, path, {}).warnings) {
            texts[static_cast<std::size_t>(world.rank())] += text;
          }
        }) == std::vector<std::string>(2));
  for (const std::string& text : texts) CHECK(text.find("has no effect") == std::string::npos);
}

TEST_CASE("processes: the histograms of staleness are added", "[processes]") {
  std::vector<sma::StalenessCounts> sums(3);
  CHECK(tests::messages_of_ranks(3, [&](World& world) {
          scheduler::Progress own;
          own.tasks = 5;
          if (world.rank() == 1) own.staleness = {{0, 2}, {4, 3}};
          if (world.rank() == 2) own.staleness = {{1, 1}, {4, 4}};
          const scheduler::Progress sum = jobs::sum_over(world, own);
          tests::expect(sum.tasks == 15, "the tasks of all");
          sums[static_cast<std::size_t>(world.rank())] = sum.staleness;
        }) == std::vector<std::string>(3));
  for (const sma::StalenessCounts& sum : sums) CHECK(sum == sma::StalenessCounts{{0, 2}, {1, 1}, {4, 7}});
}

TEST_CASE("processes: requests count once all have had the iterations of the lag, and of a shorter lag at once",
          "[processes]") {
  CHECK(tests::messages_of_ranks(2, [](World& world) {
          jobs::Agreement agreement(world);
          const auto iteration = [&](bool saves, int lag) {
            return agreement.after_iteration({.save = saves && world.rank() == 1}, lag).save;
          };
          tests::expect(!iteration(true, 3) && !iteration(false, 3) && !iteration(false, 3),
                        "nothing for three iterations");
          tests::expect(iteration(false, 3) && !iteration(true, 3), "the request of three iterations ago");
          tests::expect(iteration(false, 1), "the requests of all iterations between the lags");
          tests::expect(!iteration(false, 1) && !iteration(false, 1), "a request counts once");
        }) == std::vector<std::string>(2));
}

TEST_CASE("processes: the bound of a search counts the learners of all", "[processes]") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  const auto write = [&](const std::string& bounds, const std::string& more) {
    tests::write_text(path, R"(
model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 }
learners { per_device { auto {)" +
                                bounds + "} } }" + more);
  };
  const auto job_over = [&](int ranks, const std::string& more, const std::string& bounds = "max: 8") {
    write(bounds, more);
    std::vector<jobs::JobOptions> found(static_cast<std::size_t>(ranks));
    CHECK(tests::messages_of_ranks(ranks, [&](World& world) {
            found[static_cast<std::size_t>(world.rank())] = jobs::load_shared_job(world, path, {});
          }) == std::vector<std::string>(static_cast<std::size_t>(ranks)));
    for (const jobs::JobOptions& job : found) {
      CHECK(job.tuned->max == found.front().tuned->max);
      CHECK(job.learners_elsewhere == (ranks - 1) * job.tuned->max);
    }
    return found.front();
  };
  const jobs::JobOptions free = job_over(3, "");
  CHECK(free.tuned->max == 8);
  // With alpha 0.5 at most five learners are stable.
  const jobs::JobOptions stable = job_over(2, "synchronization { sma { alpha: 0.5 } }");
  CHECK(stable.tuned->max == 2);
  CHECK(std::ranges::any_of(stable.warnings, [](const std::string& text) {
    return text.find("all 2 processes together will have at most 2 learners of each device") != std::string::npos;
  }));
  // A round of 3 * 2 learners is longer than an epoch of 20,000 / 5,000 mini-batches.
  const jobs::JobOptions brief = job_over(3, "training { batch_size: 5000 }", "");
  CHECK(brief.tuned->max == 1);
  CHECK(job_over(3, "training { batch_size: 3000 }", "max: 2").tuned->max == 2);
  // A maximum that the job names is as wrong as in one process.
  write("max: 2", "training { batch_size: 5000 }");
  for (const std::string& thrown :
       tests::messages_of_ranks(3, [&](World& world) { jobs::load_shared_job(world, path, {}); })) {
    CHECK_THAT(thrown, ContainsSubstring("learners.per_device.auto.max: with the learners of all 3 processes, a round "
                                         "of 6 learners with period 1 needs 6 mini-batches, but an epoch has 4"));
  }
}
