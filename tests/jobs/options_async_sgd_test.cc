// `async_sgd` of a job: what it excludes, its warm start, and its warnings.
#include <algorithm>

#include <fmt/format.h>

#include "options/readers/schedule_check.h"
#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

using Catch::Matchers::StartsWith;

namespace {

constexpr const char* kLearners = "learners { per_device { fixed: 2 } }";

// Returns the valid job with this synchronization in line 7.
std::string with(std::string_view synchronization) {
  return std::string(kGoodJob) + "synchronization { " + std::string(synchronization) + " }\n";
}

// Returns the job with other learners and on one device, so that the result does not depend on the machine.
std::string with(std::string_view synchronization, std::string_view learners) {
  return changed(kLearners, "learners { per_device { " + std::string(learners) + " } }") + "devices: \"cpu\"\n" +
         "synchronization { " + std::string(synchronization) + " }\n";
}

}  // namespace

TEST_CASE("async_sgd is refused where the number of learners is searched, and the error names both fields") {
  for (const std::string scheme :
       {"async_sgd {}", "async_sgd { staleness: 0 }", "s_sgd {} switch { at_epoch: 2 async_sgd { push_every: 4 } }"}) {
    CAPTURE(scheme);
    CHECK_THAT(refusal(with(scheme, "auto { max: 4 }")),
               StartsWith("job.txtpb:8:") &&
                   ContainsSubstring("error: async_sgd and learners.per_device.auto exclude each other"));
  }
  // Other mistakes are reported beside it.
  CHECK_THAT(refusal(with("async_sgd { staleness: -1 push_every: 0 }", "auto { max: 4 }")),
             ContainsSubstring("exclude each other") && ContainsSubstring("staleness must be in") &&
                 ContainsSubstring("push_every must be in"));
}

TEST_CASE("async_sgd and hogwild have pushes and steps where other schemes have rounds") {
  const std::string many = "fixed: 4";
  CHECK_THAT(
      refusal(with("async_sgd { push_every: 200 }", many)),
      StartsWith("job.txtpb:8:") &&
          ContainsSubstring("one push of each of 4 learners (push_every: 200) takes 800 mini-batches, but an "
                            "epoch has 625; use a push_every of at most 156, fewer learners or smaller mini-batches") &&
          !ContainsSubstring("round") && !ContainsSubstring("period"));
  const std::string wide = refusal(with("async_sgd { warm_start_epochs: 0 }", "fixed: 700"));
  CHECK_THAT(wide, StartsWith("job.txtpb:6:") &&
                       ContainsSubstring("one push of each of 700 learners (push_every: 1) takes 700 mini-batches") &&
                       !ContainsSubstring("2 errors"));
  CHECK_THAT(refusal(with("hogwild {}", "fixed: 700")),
             ContainsSubstring("one step of each of 700 learners takes 700"));
}

TEST_CASE("async_sgd begins with s_sgd, unless it has the bytes of s_sgd anyway") {
  const auto read = [](const std::string& scheme, int epochs = 10) {
    return parse(with(scheme), {fmt::format("training.max_epochs={}", epochs)});
  };
  const JobOptions plain = read("async_sgd { staleness: 2 push_every: 4 scale_by_staleness: true }");
  CHECK(plain.synchronization.scheme == sma::Scheme::kSSgd);
  CHECK(plain.synchronization_path == "synchronization.async_sgd");
  REQUIRE(plain.switches.size() == 1);
  CHECK(plain.switches[0].at_epoch == 1.0);
  CHECK(plain.switches[0].to.scheme == sma::Scheme::kAsyncSgd);
  CHECK(plain.switches[0].to.staleness == 2);
  CHECK(plain.switches[0].to.period == 4);
  CHECK(plain.switches[0].to.scale_by_staleness);
  CHECK(plain.switches[0].path == "synchronization.async_sgd");
  CHECK(plain.learning_rate.with_learners == scheduler::RateScaling::kKeep);
  CHECK(plain.warnings.empty());
  const JobOptions again = parse(plain.resolved_text);
  CHECK(again.resolved_text == plain.resolved_text);
  CHECK(again.switches.size() == 1);

  const JobOptions cold = read("async_sgd { warm_start_epochs: 0 }");
  CHECK(cold.switches.empty());
  CHECK(cold.synchronization.scheme == sma::Scheme::kAsyncSgd);
  CHECK_FALSE(cold.synchronization.staleness.has_value());
  CHECK(cold.synchronization.mode(2) == sma::SynchronizationMode::kServer);
  CHECK(cold.synchronization.mode(1) == sma::SynchronizationMode::kNone);
  CHECK(read("async_sgd {}", 1).switches.empty());  // no epoch would be left

  const JobOptions synchronous = read("async_sgd { staleness: 0 }");
  CHECK(synchronous.switches.empty());
  CHECK(parse(synchronous.resolved_text).warnings == synchronous.warnings);  // none about a field that nobody wrote
  CHECK(synchronous.synchronization.mode(2) == sma::SynchronizationMode::kGradient);
  CHECK(synchronous.learning_rate.with_learners == scheduler::RateScaling::kSqrt);
  CHECK(read("async_sgd { staleness: 0 push_every: 2 }").switches.size() == 1);

  const JobOptions later = read("sma {} switch { at_epoch: 4 async_sgd {} } switch { at_epoch: 7.5 swap {} }");
  CHECK(later.switches.size() == 2);
  CHECK(later.learning_rate.with_learners == scheduler::RateScaling::kSqrt);
  const JobOptions both = read("async_sgd { warm_start_epochs: 2.5 } switch { at_epoch: 7.5 swap {} }");
  REQUIRE(both.switches.size() == 2);
  CHECK(both.switches[0].at_epoch == 2.5);
  CHECK(both.switches[1].path == "synchronization.switch[0].swap");
}

TEST_CASE("a job with a server warns of a high momentum and of a scaled learning rate") {
  const auto warnings = [](const std::string& learners, const std::vector<std::string>& settings) {
    return parse(with("async_sgd { warm_start_epochs: 0 scale_by_staleness: false }", learners), settings).warnings;
  };
  const auto has = [](const std::vector<std::string>& all, const std::string& part) {
    return std::ranges::any_of(all, [&](const std::string& text) { return text.find(part) != std::string::npos; });
  };
  const std::string high = "act like a momentum of about 1 - 1 / learners = 0.88";
  CHECK(has(warnings("fixed: 8", {"optimizer.sgd.momentum=0.9"}), high));
  CHECK_FALSE(has(warnings("fixed: 8", {"optimizer.sgd.momentum=0.5"}), "act like a momentum"));
  CHECK_FALSE(
      has(warnings("fixed: 8", {"optimizer.sgd.momentum=0.9", "synchronization.async_sgd.scale_by_staleness=true"}),
          "act like a momentum"));
  CHECK_FALSE(has(warnings("fixed: 2", {"optimizer.sgd.momentum=0.9"}), "act like a momentum"));
  // Without batch norm such a job is refused.
  const std::string normalized =
      "model={layers { name: 'n' input: 'image' batch_norm {} } layers { name: 'd' input: 'n' dense { units: 10 } } "
      "layers { name: 'loss' input: ['d', 'label'] softmax_cross_entropy {} }}";
  CHECK(has(warnings("fixed: 2", {"optimizer.sgd.momentum=0.9", "synchronization.async_sgd.push_every=4", normalized}),
            "a push is the sum of 4 gradients, and the optimizer's momentum 0.9 multiplies it by 10"));
  CHECK_FALSE(has(warnings("fixed: 2", {"optimizer.sgd.momentum=0.5", "synchronization.async_sgd.push_every=4"}),
                  "a push is the sum"));
  const std::string scaled = "as many steps as with one (each push is a step)";
  CHECK(has(warnings("fixed: 2", {"learning_rate.with_learners=LINEAR"}), scaled));
  CHECK_FALSE(has(warnings("fixed: 2", {"learning_rate.with_learners=KEEP"}), scaled));
  CHECK_FALSE(has(warnings("fixed: 1", {"learning_rate.with_learners=LINEAR"}), scaled));
}

TEST_CASE("a run that its last iteration makes much longer gets a warning") {
  const auto warnings = [](const std::string& synchronization) {
    std::vector<std::string> all = parse(with(synchronization, "fixed: 2")).warnings;
    std::erase_if(all,
                  [](const std::string& text) { return text.find("the run ends after a whole") == std::string::npos; });
    return all;
  };
  // 10 epochs of 625 mini-batches: 11 pushes of 600 mini-batches.
  const std::vector<std::string> pushes = warnings("async_sgd { push_every: 300 warm_start_epochs: 0 }");
  REQUIRE(pushes.size() == 1);
  CHECK_THAT(pushes.front(), StartsWith("training.max_epochs: ") &&
                                 ContainsSubstring("600 of the 625 mini-batches of an epoch: it trains 10.56 epochs "
                                                   "instead of 10; lower push_every"));
  CHECK_THAT(warnings("sma { period: 300 }").front(), ContainsSubstring("lower period"));
  CHECK(warnings("async_sgd { push_every: 100 warm_start_epochs: 0 }").empty());  // 2.4 % longer
  CHECK(warnings("local_sgd { period: 300 }").empty());
}

TEST_CASE("a warm start counts as no switch of the job") {
  const JobOptions job = parse(with("async_sgd {} switch { at_epoch: 2 sma {} learners: 3 }", "fixed: 4"));
  const JobOptions fewer = with_learners(job, 2, "there is no memory for more");
  REQUIRE(fewer.switches.size() == 2);
  CHECK(fewer.switches[1].learners_per_device == std::vector<int>{2});

  // 10 epochs of 625 mini-batches: the last round of 2 learners begins at mini-batch 6,248.
  const std::string late = with("async_sgd { warm_start_epochs: 9.9999 }", "fixed: 2");
  CHECK_THAT(
      unreached_switches(parse(late), 625).front(),
      StartsWith("synchronization.async_sgd.warm_start_epochs: no round begins between epoch 9.9999 and the end") &&
          ContainsSubstring(": async_sgd has no effect"));
  const std::string overtaken =
      with("async_sgd { warm_start_epochs: 1.9999 } switch { at_epoch: 2 sma {} }", "fixed: 2");
  CHECK_THAT(unreached_switches(parse(overtaken), 625).front(),
             ContainsSubstring("where synchronization.switch[0] follows: async_sgd has no effect"));
}

TEST_CASE("fields of async_sgd that have no effect get a warning") {
  const auto idle = [](const std::string& synchronization, const std::string& learners) {
    std::vector<std::string> fields;
    for (const std::string& text : parse(with(synchronization, learners)).warnings) {
      if (const std::size_t at = text.find(" has no effect "); at != std::string::npos) {
        CHECK_THAT(text, ContainsSubstring("; remove it, or "));
        fields.push_back(text.substr(0, at));
      }
    }
    return fields;
  };
  const auto field = [](const std::string& name, const std::string& scheme = "synchronization.async_sgd") {
    return fmt::format("{}.{}: {}", scheme, name, name);
  };
  using Fields = std::vector<std::string>;
  const std::string all = "async_sgd { staleness: 1 push_every: 2 scale_by_staleness: true }";
  CHECK(idle(all, "fixed: 2").empty());
  CHECK(idle(all, "fixed: 1") == Fields{field("staleness"), field("push_every"), field("scale_by_staleness")});
  CHECK(idle("async_sgd { staleness: 0 }", "fixed: 1") == Fields{field("staleness")});
  CHECK(idle("async_sgd {}", "fixed: 1").empty());
  CHECK(idle(all, "growth { to: 2 }").empty());  // there are two learners later

  CHECK(idle("async_sgd { staleness: 0 }", "fixed: 2").empty());
  CHECK(idle("async_sgd { staleness: 0 scale_by_staleness: true warm_start_epochs: 2 }", "fixed: 2") ==
        Fields{field("scale_by_staleness"), field("warm_start_epochs")});
  // With local steps in between, pushes are not those of s_sgd.
  CHECK(idle("async_sgd { staleness: 0 push_every: 2 scale_by_staleness: true warm_start_epochs: 2 }", "fixed: 2")
            .empty());
  CHECK(idle("async_sgd { warm_start_epochs: 2 } switch { at_epoch: 4 learners: 1 async_sgd { staleness: 0 } }",
             "fixed: 2") == Fields{field("staleness", "synchronization.switch[0].async_sgd")});
  CHECK(
      idle("async_sgd { warm_start_epochs: 2 } switch { at_epoch: 4 async_sgd { staleness: 0 } }", "fixed: 2").empty());
}

TEST_CASE("a warning about synchronization names the place of its field, or the setting") {
  const tests::TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  tests::write_text(path, with("async_sgd { staleness: 0 scale_by_staleness: true }", "fixed: 2"));
  const auto first = [&](const std::vector<std::string>& settings) {
    const std::vector<std::string> warnings = load_job(path, settings).warnings;
    const auto found = std::ranges::find_if(
        warnings, [](const std::string& text) { return text.find(" has no effect ") != std::string::npos; });
    REQUIRE(found != warnings.end());
    return *found;
  };
  CHECK_THAT(first({}), StartsWith(path + ":8:44: synchronization.async_sgd.scale_by_staleness: scale_by_staleness has "
                                          "no effect because staleness: 0 with push_every: 1 is s_sgd"));
  CHECK_THAT(first({"synchronization=async_sgd{staleness: 0 warm_start_epochs: 1}"}),
             StartsWith("--set synchronization=async_sgd{staleness: 0 warm_start_epochs: 1}: "
                        "synchronization.async_sgd.warm_start_epochs: warm_start_epochs has no effect"));
}

}  // namespace arbalest::jobs
