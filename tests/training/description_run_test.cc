// The files of models describe themselves, in the same bytes whatever the number of learners.
#include "saved_model/model_description.h"

#include <filesystem>
#include <string>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;

jobs::JobOptions job_of(const std::string& learners) {
  return short_job("logistic-digits.txtpb",
                   {"training.max_epochs=2", "learners.per_device.fixed=" + learners,
                    "data.class_names=[\"null\", \"one\", \"two\", \"three\", \"four\", \"five\", \"six\", \"seven\", "
                    "\"eight\", \"nine\"]",
                    "checkpoint={every_epochs: 1}"});
}

}  // namespace

TEST_CASE("the final, the best and a checkpoint's model carry the description of the run", "[checkpoint]") {
  const TemporaryDirectory output;
  train_part(job_of("1"), output.path());
  const jobs::Metadata metadata = jobs::read_safetensors_metadata(output / "model.safetensors");
  const jobs::ModelDescription description = jobs::description_in(metadata).value();
  CHECK(metadata == jobs::to_metadata(description));  // and nothing else
  CHECK(description.job == "logistic-digits");
  CHECK(description.shape == engine::Shape{1, 28, 28});
  CHECK(description.normalization.mean == std::vector<float>{0.1263F});
  CHECK(description.label(3) == "three");
  CHECK(jobs::description_in(jobs::read_safetensors_metadata(output / jobs::kBestModel)) == description);
  const jobs::Checkpoint checkpoint = jobs::list_checkpoints(jobs::checkpoints_of(output.path())).back();
  CHECK(jobs::read_safetensors_metadata(checkpoint.path / "model.safetensors") == metadata);
  CHECK_FALSE(jobs::description_in(jobs::read_safetensors_metadata(checkpoint.path / "center.safetensors")));

  const TemporaryDirectory another;  // another number of learners, another directory
  train_part(job_of("2"), another.path());
  CHECK(jobs::read_safetensors_metadata(another / "model.safetensors") == metadata);
}

TEST_CASE("a best model that is taken over keeps its description", "[checkpoint]") {
  const TemporaryDirectory first;
  train_part(job_of("1"), first.path());
  const TemporaryDirectory second;
  train_part(job_of("1"), second.path(),
             {.looks = 1, .from = jobs::list_checkpoints(jobs::checkpoints_of(first.path())).back().path});
  CHECK(read_text(second / jobs::kBestModel) == read_text(first / jobs::kBestModel));
}

TEST_CASE("a model of an older version, which does not describe itself, evaluates to the same", "[checkpoint]") {
  const TemporaryDirectory output;
  const jobs::JobOptions job = job_of("1");
  const Part part = train_part(job, output.path());
  const std::string old = (output / "old.safetensors").string();
  const std::string sha256 = jobs::write_safetensors(old, jobs::read_safetensors(output / "model.safetensors"),
                                                     {{"format", "arbalest"}, {"job", job.name}});
  CHECK(jobs::evaluate_run(job, old, sha256, {}).scores.value("accuracy") == part.summary.test.value("accuracy"));
}

}  // namespace arbalest::tests
