#include "train/sparse/factorization_method.h"

#include <algorithm>
#include <variant>

#include "engine/base/update_rule.h"
#include "messages/text.h"
#include "sma/divergence_remedy.h"
#include "train/sparse/factorization_model.h"
#include "train/sparse/sparse_metrics.h"
#include "train/weights/describe_model.h"

namespace arbalest::jobs {

namespace {

class FactorizationMethod final : public SparseMethod {
 public:
  FactorizationMethod(const JobOptions& job, const std::string& data_root, std::vector<std::string>& warnings)
      : job_(job),
        learning_rate_(std::get<HogwildOptions>(job.sparse->scheme).learning_rate),
        train_ratings_(load_rating_list(job, data_root, dataflow::Split::kTrain, warnings)),
        test_ratings_(load_rating_list(job, data_root, dataflow::Split::kTest, warnings)),
        solver_(train_ratings_, to_model(initial_tensors(job)),
                {.weight_decay = engine::weight_decay_of(job.optimizer.rule), .seed = job.training.seed},
                cores_of_learners(job)) {}

  SparseFacts facts() const override {
    const scheduler::FactorizationModel& model = solver_.model();
    return {.model = fmt::format("matrix factorization of width {}, {}", model.width,
                                 counted(static_cast<std::int64_t>(model.size()), "parameter")),
            .data = fmt::format("{}: {} and {} of {} users and {} items", job_.data.directory,
                                counted(rows(), "training rating"),
                                counted(static_cast<std::int64_t>(test_ratings_.size()), "test rating"),
                                grouped(model.users), grouped(model.items)),
            .scheme = "hogwild: single ratings, one shared model",
            .advice = fmt::format(
                "{}, or set model.zoo.matrix_factorization.mean to the mean rating, or look for absurd ratings",
                sma::hogwild_rows_remedy(static_cast<int>(cores_of_learners(job_).size())))};
  }
  std::int64_t rows() const override { return static_cast<std::int64_t>(train_ratings_.size()); }

  SparseEpoch train(int number, bool /*is_last*/, const std::atomic<int>* stop_signal) override {
    const float rate = learning_rate_.at(number - 1, 1);
    const scheduler::FactorizationEpoch epoch =
        solver_.epoch(static_cast<std::uint64_t>(number) - 1, rate, stop_signal);
    return {.is_whole = epoch.is_whole, .rows = epoch.ratings, .learning_rate = rate, .progress = {}};
  }

  // The scores are those of the present model, as for other models that are trained without mini-batches.
  void measure(SparseEpoch& epoch) const override {
    epoch.scores = score_factorization(job_, solver_.model(), train_ratings_).scores;
    epoch.progress.objective = epoch.scores.loss();
    epoch.progress.non_zeros =
        std::ranges::count_if(solver_.model().weights, [](float weight) { return weight != 0.0F; });
  }

  SparseTest test() const override { return score_factorization(job_, solver_.model(), test_ratings_); }
  std::vector<dataflow::NamedTensor> tensors() const override { return to_tensors(job_, solver_.model()); }
  Metadata description() const override { return to_metadata(describe_model(job_, {})); }

 private:
  const JobOptions& job_;
  scheduler::LearningRateSchedule learning_rate_;
  std::vector<scheduler::Rating> train_ratings_;
  std::vector<scheduler::Rating> test_ratings_;
  scheduler::HogwildFactorization solver_;
};

}  // namespace

std::unique_ptr<SparseMethod> make_factorization_method(const JobOptions& job, const std::string& data_root,
                                                        std::vector<std::string>& warnings) {
  return std::make_unique<FactorizationMethod>(job, data_root, warnings);
}

SparseTest score_factorization(const JobOptions& job, const scheduler::FactorizationModel& model,
                               std::span<const scheduler::Rating> ratings) {
  return {.scores = scores_of_means(sparse_metrics(job), {scheduler::squared_error(model, ratings)}),
          .rows = static_cast<std::int64_t>(ratings.size())};
}

}  // namespace arbalest::jobs
