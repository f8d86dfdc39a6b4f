// The cache of numbers of learners that `arbalest tune` has found.
#include "train/learners/learner_cache.h"

#include <sys/stat.h>

#include <set>

#include "tests/jobs/job_text.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

using Counts = std::optional<std::vector<int>>;

Counts one(int learners) { return std::vector<int>{learners}; }

JobOptions job_with(const std::vector<std::string>& overrides = {}) {
  return parse(std::string(kGoodJob) + "devices: \"cpu\"\n", overrides);
}

// Returns the cached numbers. There must be no warning.
Counts found(const LearnerCache& cache, const JobOptions& job) {
  std::vector<std::string> warnings;
  const Counts counts = cache.find(job, warnings);
  CHECK(warnings == std::vector<std::string>{});
  return counts;
}

// Checks that nothing is found, and returns the warning. The file is removed, so there is no second warning. With
// `is_removed` false, the file cannot be removed.
std::string ignored(const LearnerCache& cache, const JobOptions& job, bool is_removed = true) {
  std::vector<std::string> warnings;
  CHECK(cache.find(job, warnings) == Counts());
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring(cache.file_of(job).string()));
  CHECK_THAT(warnings[0], ContainsSubstring(is_removed ? "ignored and has been removed" : "cannot be removed"));
  CHECK(std::filesystem::exists(std::filesystem::symlink_status(cache.file_of(job))) != is_removed);
  if (is_removed) CHECK(found(cache, job) == Counts());
  return warnings[0];
}

}  // namespace

TEST_CASE("a cached number of learners is found again, and a newer one replaces it") {
  const tests::TemporaryDirectory directory;
  const LearnerCache cache(directory / "of/several", "1.2.3");
  const JobOptions job = job_with();
  CHECK(found(cache, job) == Counts());
  cache.remember(job, {3}, 100.5);
  CHECK(found(cache, job) == one(3));
  cache.remember(job, {7}, 200.0);
  CHECK(found(LearnerCache(directory / "of/several", "1.2.3"), job) == one(7));
  CHECK(std::distance(std::filesystem::directory_iterator(cache.directory()), {}) == 1);
}

TEST_CASE("the cache key has every option that affects the number of learners, and no other") {
  const tests::TemporaryDirectory directory;
  const LearnerCache cache(directory.path(), "1.2.3");
  cache.remember(job_with(), {3}, 100.0);
  for (const auto& same : std::vector<std::vector<std::string>>{
           {"training.seed=4", "training.max_epochs=2", "training.target_accuracy=0.9"},
           {"learning_rate.base=0.5", "learning_rate.with_learners=LINEAR"},
           {"optimizer.sgd={momentum: 0.5 weight_decay: 0.1}"},
           {"learners.per_device.auto={max: 4}"},
           {"learners.per_device.auto={objective: THROUGHPUT}"},
           {"name=another"}}) {
    CAPTURE(same);
    CHECK(found(cache, job_with(same)) == one(3));
  }
  std::set<std::filesystem::path> files = {cache.file_of(job_with())};
  for (const auto& other : std::vector<std::vector<std::string>>{{"model.zoo={logistic_regression {}}"},
                                                                 {"training.batch_size=16"},
                                                                 {"learners.per_device.auto={objective: GOODPUT}"},
                                                                 {"optimizer.adamw={}"},
                                                                 {"optimizer.clip_gradient_norm=1"},
                                                                 {"synchronization.sma.period=2"},
                                                                 {"data.augmentation={padding: 2}"},
                                                                 {"data.fashion_mnist={}"}}) {
    CAPTURE(other);
    const JobOptions job = job_with(other);
    CHECK(found(cache, job) == Counts());
    CHECK(files.insert(cache.file_of(job)).second);
  }
  CHECK(found(LearnerCache(directory.path(), "1.2.4"), job_with()) == Counts());
  JobOptions job = job_with();
  job.training.precision = engine::Precision::kBFloat16;
  CHECK(found(cache, job) == Counts());
  job = job_with();
  job.devices[0].cores = {0};  // one core, pinned
  CHECK(found(cache, job) == Counts());
  job = job_with();
  job.devices.push_back(job.devices[0]);
  CHECK(found(cache, job) == Counts());
}

TEST_CASE("a model of the zoo and the list of its layers share a cache entry") {
  const tests::TemporaryDirectory directory;
  const LearnerCache cache(directory.path(), "1.2.3");
  cache.remember(job_with(), {3}, 100.0);
  const std::string listed = expand_job(SourceText("job.txtpb", std::string(kGoodJob) + "devices: \"cpu\"\n"));
  REQUIRE(listed.find("zoo") == std::string::npos);
  CHECK(found(cache, parse(listed)) == one(3));
}

TEST_CASE("a truncated cache entry is ignored and removed, and the next tuning writes a new one") {
  const tests::TemporaryDirectory directory;
  const LearnerCache cache(directory.path(), "1.2.3");
  const JobOptions job = job_with();
  cache.remember(job, {3}, 100.0);
  const std::filesystem::path file = cache.file_of(job);
  const std::string whole = tests::read_text(file);
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {  // the last byte ends the line
    tests::write_text(file, whole.substr(0, size));
    REQUIRE_THAT(ignored(cache, job), ContainsSubstring("it is not JSON"));
  }
  cache.remember(job, {5}, 100.0);
  CHECK(found(cache, job) == one(5));
}

TEST_CASE("an invalid cache entry is ignored and removed") {
  const tests::TemporaryDirectory directory;
  const LearnerCache cache(directory.path(), "1.2.3");
  const JobOptions job = job_with();
  cache.remember(job, {3}, 100.0);
  const std::filesystem::path file = cache.file_of(job);
  const auto whole = nlohmann::ordered_json::parse(tests::read_text(file));
  const auto with = [&](const char* field, const nlohmann::ordered_json& value) {
    auto answer = whole;
    answer[field] = value;
    return answer.dump();
  };
  const nlohmann::ordered_json array = nlohmann::ordered_json::array();
  nlohmann::ordered_json other_key = whole["key"];
  other_key["batch_size"] = 64;
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "it is not JSON"},
           {"null", "it is not JSON"},
           {"{}", "it has another format"},
           {with("format", "arbalest learners per device, 2"), "it has another format"},
           {with("format", 1), "it has another format"},
           {with("key", other_key), "it is of another job"},
           {with("key", nullptr), "it is of another job"},
           {with("learners_per_device", array), "for each device"},
           {with("learners_per_device", 3), "for each device"},
           {with("learners_per_device", {3, 3}), "for each device"},
           {with("learners_per_device", {0}), "0 is no number of learners"},
           {with("learners_per_device", {-2}), "-2 is no number of learners"},
           {with("learners_per_device", {1025}), "1025 is no number of learners"},
           {with("learners_per_device", {18446744073709551615U}), "18446744073709551615 is no number of learners"},
           {with("learners_per_device", {2.5}), "2.5 is no number of learners"},
           {with("learners_per_device", {"3"}), "\"3\" is no number of learners"},
           {std::string(100'000, '['), "too long"},
           {std::string("\0\xff", 2), "it is not JSON"}}) {
    CAPTURE(text);
    tests::write_text(file, text);
    CHECK_THAT(ignored(cache, job), ContainsSubstring(problem));
  }
  // A pipe without a writer must not block.
  REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  CHECK_THAT(ignored(cache, job), ContainsSubstring("it is no file"));
  cache.remember(job, {6}, 100.0);
  CHECK(found(cache, job) == one(6));
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  CHECK_THAT(ignored(cache, job, /*is_removed=*/false), ContainsSubstring("it is no file"));
  CHECK_THROWS_WITH(cache.remember(job, {6}, 100.0), ContainsSubstring("cannot write '" + file.string()));
}

TEST_CASE("if the cache cannot be written, the error names the path") {
  const tests::TemporaryDirectory directory;
  tests::write_text(directory / "file", "");
  const LearnerCache cache(directory / "file/below", "1.2.3");
  CHECK(found(cache, job_with()) == Counts());
  CHECK_THROWS_WITH(cache.remember(job_with(), {3}, 1.0),
                    ContainsSubstring("cannot write '" + (directory / "file").string()));
}

}  // namespace arbalest::jobs
