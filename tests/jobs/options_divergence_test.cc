// A job says what happens when training diverges or stops improving, and how often copies are compared.
#include <algorithm>

#include "options/divergence/divergence_reader.h"
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

std::string refused(const std::string& field, const std::string& added = "") {
  return refusal(changed("batch_size: 32", field) + added);
}

}  // namespace

TEST_CASE("a job stops where it diverges unless it asks to go back") {
  CHECK_FALSE(parse(std::string(kGoodJob)).training.divergence.rolls_back);
  const DivergenceOptions defaults =
      parse(std::string(kGoodJob), {"training.on_divergence=ROLL_BACK"}).training.divergence;
  CHECK(defaults.rolls_back);
  CHECK(defaults.rollback_factor == 0.5);
  CHECK(defaults.spike_factor == 3.0);
  const DivergenceOptions own =
      parse(std::string(kGoodJob),
            {"training.on_divergence=ROLL_BACK", "training.rollback_factor=0.1", "training.spike_factor=2.5"})
          .training.divergence;
  CHECK(own.rollback_factor == 0.1);
  CHECK(own.spike_factor == 2.5);
}

TEST_CASE("wrong values of what a job does when it diverges are refused at their place") {
  CHECK_THAT(refused("on_divergence: ROLL_BACK rollback_factor: 1"),
             ContainsSubstring("job.txtpb:4:37: error: rollback_factor must be in (0, 1), not 1"));
  CHECK_THAT(refused("on_divergence: ROLL_BACK rollback_factor: 0"),
             ContainsSubstring("job.txtpb:4:37: error: rollback_factor must be in (0, 1), not 0"));
  CHECK_THAT(refused("on_divergence: ROLL_BACK spike_factor: 1"),
             ContainsSubstring("job.txtpb:4:37: error: spike_factor must be in (1, 1000000], not 1"));
  CHECK_THAT(refused("spike_factor: 4"),
             ContainsSubstring("job.txtpb:4:12: error: spike_factor has no effect without on_divergence: ROLL_BACK"));
  CHECK_THAT(
      refused("on_divergence: STOP rollback_factor: 0.5"),
      ContainsSubstring("job.txtpb:4:32: error: rollback_factor has no effect without on_divergence: ROLL_BACK"));
  CHECK_THAT(refused("on_divergence: ROLL_BACK", "checkpoint { keep_last: 0 }\n"),
             ContainsSubstring("job.txtpb:4:12: error: ROLL_BACK goes back to a checkpoint, and checkpoint.keep_last "
                               "is 0; set it to 1 or more"));
  CHECK_THAT(refused("on_divergence: GO_BACK"), ContainsSubstring("job.txtpb:4:27: error: "));
}

TEST_CASE("a job too short to tell a spike of its loss is a warning") {
  // An epoch of the good job has 625 mini-batches of 32 examples: 19 windows of 32.
  const auto is_warned = [](int epochs, int batch) {
    const JobOptions job =
        parse(std::string(kGoodJob), {"training.on_divergence=ROLL_BACK", fmt::format("training.max_epochs={}", epochs),
                                      fmt::format("training.batch_size={}", batch)});
    return std::ranges::any_of(job.warnings, [](const std::string& warning) {
      return warning.starts_with("training.spike_factor has no effect");
    });
  };
  CHECK(is_warned(1, 32));
  CHECK_FALSE(is_warned(2, 32));
  CHECK_FALSE(parse(std::string(kGoodJob), {"training.max_epochs=1"}).training.divergence.rolls_back);
  TrainingOptions training;
  training.divergence.rolls_back = true;
  training.batch_size = 512;  // windows of 32 mini-batches
  training.max_epochs = 11;
  CHECK(spike_warning(training, 32).empty());
  CHECK_THAT(spike_warning(training, 31), ContainsSubstring("needs 11 windows of 32 mini-batches, and the run has 10"));
  training.batch_size = 8;  // windows of 128
  CHECK_THAT(spike_warning(training, 127),
             ContainsSubstring("needs 11 windows of 128 mini-batches, and the run has 10"));
  CHECK(spike_warning(training, 128).empty());
}

TEST_CASE("wrong values of a plateau are refused at their place") {
  const auto refused_plateau = [](const std::string& field) {
    return refusal(changed("base: 0.01", "base: 1 plateau { " + field + " }"));
  };
  CHECK_THAT(refused_plateau("factor: 1"), ContainsSubstring("job.txtpb:5:35: error: factor must be in (0, 1), not 1"));
  CHECK_THAT(refused_plateau("factor: 0"), ContainsSubstring("job.txtpb:5:35: error: factor must be in (0, 1), not 0"));
  CHECK_THAT(refused_plateau("patience: -1"),
             ContainsSubstring("5:35: error: patience must be in [0, 1000000], not -1"));
  CHECK_THAT(refused_plateau("min_improvement: -1"),
             ContainsSubstring("5:35: error: min_improvement must be in [0, 1000000], not -1"));
  CHECK_THAT(refused_plateau("min_improvement: nan"),
             ContainsSubstring("5:35: error: min_improvement must be a finite"));
  CHECK_THAT(refused_plateau("cooldown: -1"),
             ContainsSubstring("5:35: error: cooldown must be in [0, 1000000], not -1"));
  CHECK_THAT(refused_plateau("min_factor: 1"), ContainsSubstring("5:35: error: min_factor must be in [0, 1), not 1"));
  const JobOptions job = parse(changed("base: 0.01", "base: 1 plateau { patience: 3 }"));
  const auto& plateau = std::get<scheduler::Plateau>(job.learning_rate.curve);
  CHECK(plateau.patience == 3);
  CHECK(plateau.factor == 0.1);
  CHECK(job.learning_rate.at(7.0, 1) == 1.0F);
}

TEST_CASE("the rounds between two comparisons of the devices' copies are an option of the job") {
  CHECK(parse(std::string(kGoodJob)).compare_rounds == 500);
  CHECK(parse(std::string(kGoodJob), {"synchronization.compare_rounds=0"}).compare_rounds == 0);
  CHECK_THAT(refusal(changed("learners", "synchronization { compare_rounds: -1 }\nlearners")),
             ContainsSubstring("6:19: error: compare_rounds must be in [0, 1000000000], not -1"));
}

}  // namespace arbalest::jobs
