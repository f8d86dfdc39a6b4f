// A job on ratings trains on the stand-in like on the CPU.
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/catch.h"
#include "tests/support/ratings_writer.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

TEST_CASE("matrix factorization trains on a GPU like on the CPU", "[training]") {
  cuda_stand_in::reset();
  const TemporaryDirectory directory;
  write_ratings(directory / "ratings");
  const std::vector<std::string> overrides{"data.ratings.directory=" + (directory / "ratings").string(),
                                           "training.max_epochs=1", "training.batch_size=256",
                                           "learners.per_device.fixed=2", "learning_rate.fixed={}"};
  std::vector<double> errors;
  for (const std::string device : {"cpu", "cuda:0"}) {
    std::vector<std::string> on_device = overrides;
    on_device.push_back("devices=" + device);
    errors.push_back(run(load("matrix-factorization-ratings.txtpb", on_device)).test.value("rmse").value());
  }
  CHECK(errors[1] == Approx(errors[0]).epsilon(1e-5));
  cuda_stand_in::require_clean();
}

TEST_CASE("matrix factorization in teams ends where learners alone do", "[training]") {
  const TemporaryDirectory directory;
  write_ratings(directory / "ratings");
  std::vector<double> errors;
  for (const std::string team : {"1", "2"}) {
    cuda_stand_in::reset();
    errors.push_back(run(load("matrix-factorization-ratings.txtpb",
                              {"data.ratings.directory=" + (directory / "ratings").string(), "training.max_epochs=1",
                               "training.batch_size=256", "learners.per_device.fixed=2", "learning_rate.fixed={}",
                               "devices=cuda:0", "learners.per_device.team=" + team}))
                         .test.value("rmse")
                         .value());
    cuda_stand_in::require_clean();
  }
  CHECK(errors[1] == errors[0]);
}

}  // namespace arbalest::tests
