#include <cmath>
#include <csignal>
#include <limits>

#include "messages/text.h"
#include "report/inspection/inspection_report.h"
#include "tests/jobs/captured_console.h"
#include "tests/support/catch.h"
#include "tests/support/metrics.h"

namespace arbalest::jobs {
namespace {

RunStart some_start() {
  RunStart start;
  start.job = "trial";
  start.metrics = tests::classifier_metrics();
  start.model = "8 layers";
  start.devices = {"cpu:0-1", "cpu:2"};
  start.learners_per_device = {2, 1};
  start.batch_size = 32;
  start.max_epochs = 10;
  start.target_accuracy = 0.99;
  start.dropped_examples = 1234;
  start.warnings = {"slow"};
  start.output_directory = "runs/trial";
  return start;
}

RunProgress progress_at(double seconds) {
  RunProgress progress;
  progress.epoch = seconds / 10;
  progress.max_epochs = 10;
  progress.train_loss = 0.25;
  progress.images_per_second = 12345;
  progress.elapsed_seconds = seconds;
  progress.remaining_seconds = 100 - seconds;
  return progress;
}

RunSummary some_summary() {
  RunSummary summary;
  summary.status = RunStatus::kTargetReached;
  summary.test.set("accuracy", 0.9912);
  summary.best_test = 0.993;
  summary.epochs = 4;
  summary.train_seconds = 21.5;
  summary.time_to_accuracy_seconds = 19.25;
  summary.images_per_second = 45678;
  summary.devices = {"cpu:0-1", "cpu:2"};
  summary.learners_per_device = {2, 1};
  summary.model_sha256 = "00";
  return summary;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("console: regression models show an RMSE in place of an accuracy") {
  Console console;
  RunStart start = some_start();
  start.metrics = tests::ratings_metrics();
  start.target_accuracy.reset();
  console.reporter.on_start(start);
  EpochRow row;
  row.epoch = 3;
  row.test.set("loss", 0.25);
  row.test.set("rmse", 0.5);
  row.images_per_second = 12345;
  console.reporter.on_epoch(row);
  CHECK_THAT(console.messages.text(), ContainsSubstring("test loss 0.2500  test RMSE 0.5000  12,345 ratings/s"));
  RunSummary summary = some_summary();
  summary.status = RunStatus::kCompleted;
  summary.test = {};
  summary.test.set("rmse", 0.5);
  summary.best_test = 0.4375;
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(), ContainsSubstring("test RMSE") &&
                                         ContainsSubstring("0.5000 after 4 epochs (best 0.4375)") &&
                                         ContainsSubstring("45,678 ratings/s"));
  CHECK_THAT(console.results.text(), !ContainsSubstring("accuracy"));
}

TEST_CASE("console: says at the start what is going to run") {
  Console console;
  console.reporter.on_start(some_start());
  const std::string text = console.messages.text();
  for (const char* part : {"trial", "8 layers", "drops its last 1,234 examples", "2 on 'cpu:0-1', 1 on 'cpu:2'",
                           "batches of 32", "99.00 %", "10 epochs", "runs/trial", "arbalest: warning: slow\n"}) {
    CHECK_THAT(text, ContainsSubstring(part));
  }
  CHECK(console.results.text().empty());
  CHECK_THAT(text, ContainsSubstring("1 on 'cpu:2'; mini-batches"));
  Console growing;
  RunStart start = some_start();
  start.learners_change = "8, 8 from epoch 6 on";
  growing.reporter.on_start(start);
  CHECK_THAT(growing.messages.text(), ContainsSubstring("1 on 'cpu:2' (8, 8 from epoch 6 on); mini-batches"));
}

TEST_CASE("console: says at once that it prepares, in a line that a terminal removes later") {
  Console plain;
  plain.reporter.on_prepare();
  CHECK(plain.messages.text() == "preparing data and learners\n");
  Console bar({.bar = true, .columns = 10});
  bar.reporter.on_prepare();
  CHECK(bar.messages.text() == "\r\x1b[Kpreparing");
  bar.reporter.on_start(some_start());
  CHECK_THAT(bar.messages.text(), ContainsSubstring("preparing\r\x1b[Kjob"));
  Console quiet({.quiet = true});
  quiet.reporter.on_prepare();
  CHECK(quiet.messages.text().empty());
}

TEST_CASE("console: a run that fails during preparation leaves no partial line") {
  Console console({.bar = true});
  console.reporter.on_prepare();
  RunSummary failed;
  failed.status = RunStatus::kFailed;
  console.reporter.on_finish(failed);
  CHECK(console.messages.text().ends_with("learners\r\x1b[K"));
}

TEST_CASE("console: a signal is answered at once, also with --quiet") {
  for (const bool quiet : {false, true}) {
    Console console({.quiet = quiet});
    console.reporter.on_stop(SIGINT);
    CHECK(console.messages.text() == "arbalest: stopping and saving; Ctrl-C again exits without saving\n");
    console.reporter.on_stop(SIGTERM);
    CHECK_THAT(console.messages.text(), ContainsSubstring("a second SIGTERM exits without saving"));
  }
}

TEST_CASE("console: without a terminal, one plain line per interval and one per epoch") {
  Console console;
  console.reporter.on_start(some_start());
  const std::size_t before = count(console.messages.text(), "\n");
  for (int tenth = 0; tenth < 250; ++tenth) console.reporter.on_progress(progress_at(tenth / 10.0));  // 25 s
  CHECK(count(console.messages.text(), "\n") - before == 3);  // at 0, 10 and 20 s
  EpochRow row;
  row.epoch = 1;
  row.train.set("accuracy", 0.25);
  row.test.set("accuracy", 0.5);
  row.elapsed_seconds = 25;
  console.reporter.on_epoch(row);
  console.reporter.on_progress(progress_at(26));  // too soon after the epoch's line
  CHECK(count(console.messages.text(), "\n") - before == 4);
  CHECK_THAT(console.messages.text(), ContainsSubstring("epoch 1/10  train loss 0.0000  accuracy 25.00 %  test loss") &&
                                          ContainsSubstring("test accuracy 50.00 %"));
  CHECK(count(console.messages.text(), "\r") + count(console.messages.text(), "\x1b") == 0);
}

TEST_CASE("console: top-5 accuracy is shown if there are many classes, and top-k accuracies that the job names") {
  const bool validates = GENERATE(false, true);
  for (const std::int64_t classes : {10, 100}) {
    for (const bool is_named : {false, true}) {
      CAPTURE(classes, validates, is_named);
      Console console;
      RunStart start = some_start();
      start.metrics =
          tests::classifier_metrics(classes, is_named ? dataflow::AccuracyLayer({5, 3}) : dataflow::AccuracyLayer());
      console.reporter.on_start(start);
      EpochRow row;
      (validates ? row.validation : row.test) = row.train = Scores(start.metrics, {{0, 2, 3, 2}}, 4);
      console.reporter.on_epoch(row);
      RunSummary summary = some_summary();
      if (validates) summary.accuracy_set = EvaluationSet::kValidation;
      (validates ? summary.validation : summary.test) = Scores(start.metrics, {{0, 4, 7, 4}}, 8);
      console.reporter.on_finish(summary);
      const std::string said = console.messages.text() + console.results.text();
      const std::string more = is_named ? ", top-3 accuracy 50.00 %)" : ")";
      const std::size_t times = classes == 100 || is_named ? 1 : 0;
      CHECK(count(said, "accuracy 50.00 % (top-5 accuracy 75.00 %" + more) == 2 * times);  // in training, and after it
      CHECK(count(said, "(top-5 accuracy 87.50 %" + more) == times);
    }
  }
}

TEST_CASE("console: on a terminal, a bar that is rewritten in place and fits the width") {
  for (const int columns : {20, 60, 80, 200}) {
    Console console({.bar = true, .columns = columns});
    console.reporter.on_start(some_start());
    const std::size_t start = console.messages.text().size();
    for (const double seconds : {1.0, 50.0}) console.reporter.on_progress(progress_at(seconds));
    const std::string text = console.messages.text().substr(start);
    CHECK(count(text, "\n") == 0);
    CHECK(count(text, "\r\x1b[K") == 2);
    CHECK(text.substr(text.rfind('K') + 1).size() < static_cast<std::size_t>(columns));
    console.reporter.on_finish(some_summary());
    CHECK(console.messages.text().substr(start) == text + "\r\x1b[K");  // the bar is removed
  }
}

TEST_CASE("console: colors only if they are requested") {
  for (const bool color : {false, true}) {
    Console console({.bar = true, .color = color});
    console.reporter.on_start(some_start());
    console.reporter.on_progress(progress_at(50));
    CHECK((count(console.messages.text(), "\x1b[3") > 0) == color);
  }
}

TEST_CASE("console: --quiet shows only warnings and the result") {
  Console console({.quiet = true});
  console.reporter.on_start(some_start());
  console.reporter.on_progress(progress_at(1));
  console.reporter.on_epoch(EpochRow{});
  console.reporter.on_finish(some_summary());
  CHECK(console.messages.text() == "arbalest: warning: slow\n");
  CHECK_FALSE(console.results.text().empty());
}

TEST_CASE("console: with a validation set, shows its accuracy and says that the target applies to it") {
  Console console;
  RunStart start = some_start();
  start.accuracy_set = EvaluationSet::kValidation;
  console.reporter.on_start(start);
  CHECK_THAT(
      console.messages.text(),
      ContainsSubstring("at 99.00 % validation accuracy (lower median of the last 5 evaluations), or after 10 epochs"));
  EpochRow row;
  row.epoch = 1;
  row.validation.set("loss", 0.25);
  row.validation.set("accuracy", 0.625);
  row.images_per_second = 7;
  console.reporter.on_epoch(row);
  CHECK_THAT(console.messages.text(),
             ContainsSubstring("train loss 0.0000  validation loss 0.2500  validation accuracy 62.50 %  7 images/s"));
  RunSummary summary = some_summary();
  summary.accuracy_set = EvaluationSet::kValidation;
  summary.validation.set("accuracy", 0.9904);
  summary.best_validation = 0.9917;
  console.reporter.on_finish(summary);
  const std::string result = console.results.text();
  CHECK_THAT(result, ContainsSubstring("validation accuracy  99.04 % after 4 epochs (best 99.17 %)\n") &&
                         ContainsSubstring("test accuracy        99.12 %\n") &&
                         ContainsSubstring("19.2 s to 99.00 % validation accuracy\n"));

  Console failed;
  failed.reporter.on_start(start);
  const std::size_t before = failed.messages.text().size();
  summary.status = RunStatus::kFailed;
  summary.validation.set("accuracy", {});
  failed.reporter.on_finish(summary);
  CHECK(failed.messages.text().substr(before) ==
        "arbalest: before it failed: best validation accuracy 99.17 % in 4 epochs\n");
}

TEST_CASE("console: the result has accuracy, time to accuracy, throughput, learners and the model") {
  Console console;
  console.reporter.on_start(some_start());
  console.reporter.on_finish(some_summary());
  for (const char* part : {"99.12 % after 4 epochs (best 99.30 %)", "19.2 s to 99.00 % test accuracy",
                           "45,678 images/s", "2 on 'cpu:0-1', 1 on 'cpu:2'", "runs/trial/model.safetensors"}) {
    CHECK_THAT(console.results.text(), ContainsSubstring(part));
  }
}

TEST_CASE("console: start and result say in what teams learners train") {
  Console console;
  RunStart start = some_start();
  RunSummary summary = some_summary();
  start.largest_team = summary.largest_team = 4;
  console.reporter.on_start(start);
  CHECK_THAT(console.results.text() + console.messages.text(), ContainsSubstring(", in teams of 4; "));
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(), ContainsSubstring("1 on 'cpu:2', in teams of 4\n"));
}

TEST_CASE("console: says when the target was not reached, and why a run stopped early") {
  Console console;
  console.reporter.on_start(some_start());
  RunSummary summary = some_summary();
  summary.status = RunStatus::kDiverged;
  summary.message = "learner 1 met a value that is not finite";
  summary.time_to_accuracy_seconds.reset();
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(), ContainsSubstring("99.00 % test accuracy not reached in 21.5 s"));
  CHECK_THAT(console.messages.text(), ContainsSubstring("arbalest: error: learner 1 met"));
}

TEST_CASE("console: a run that passed the target but does not hold it yet says what is compared with the target") {
  Console console;
  console.reporter.on_start(some_start());
  RunSummary summary = some_summary();  // ends at 99.12 %
  summary.status = RunStatus::kCompleted;
  summary.time_to_accuracy_seconds.reset();
  summary.held_accuracy = HeldAccuracy{.accuracy = 0.9876, .evaluations = 4};
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(),
             ContainsSubstring("99.00 % test accuracy not yet held after 21.5 s: the lower median of the last 4 "
                               "evaluations is 98.76 %"));
}

TEST_CASE("console: no accuracy short of the target is rounded up to it") {
  Console console;
  console.reporter.on_start(some_start());
  RunSummary summary = some_summary();
  summary.status = RunStatus::kCompleted;
  summary.time_to_accuracy_seconds.reset();
  summary.held_accuracy = HeldAccuracy{.accuracy = 0.98996, .evaluations = 4};
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(),
             ContainsSubstring("99.00 % test accuracy not yet held") && ContainsSubstring("evaluations is 98.996 %"));
}

TEST_CASE("console: a stopped run says how many epochs it has trained") {
  Console console;
  console.reporter.on_start(some_start());
  RunSummary summary = some_summary();
  summary.status = RunStatus::kStopped;
  summary.message = "stopped by SIGINT after 0.6 epochs";
  summary.epochs = 0;
  summary.epochs_begun = 0.62;
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(), ContainsSubstring("99.12 % after 0.6 epochs (best 99.30 %)"));
  CHECK_THAT(console.messages.text(), ContainsSubstring("arbalest: stopped by SIGINT after 0.6 epochs\n"));
}

TEST_CASE("console: switches without effect are a warning at the end, also with --quiet") {
  for (const auto& [unused, said] :
       std::vector<std::pair<int, std::string>>{{0, ""}, {1, "1 switch of the"}, {2, "2 switches of the"}}) {
    Console console({.quiet = true});
    console.reporter.on_start(some_start());
    RunSummary summary = some_summary();
    summary.unused_switches = unused;
    console.reporter.on_finish(summary);
    const std::string text = console.messages.text();
    CHECK(count(text, "synchronization had no effect") == (unused > 0 ? 1 : 0));
    CHECK_THAT(text, ContainsSubstring(said));
  }
}

TEST_CASE("console: singular and plural of epochs and examples") {
  Console console;
  RunStart start = some_start();
  start.max_epochs = 1;
  start.dropped_examples = 1;
  console.reporter.on_start(start);
  CHECK_THAT(console.messages.text(),
             ContainsSubstring("after 1 epoch\n") && ContainsSubstring("drops its last 1 example, "));
  RunSummary summary = some_summary();
  summary.epochs = 1;
  console.reporter.on_finish(summary);
  CHECK_THAT(console.results.text(), ContainsSubstring("after 1 epoch (best"));
}

TEST_CASE("console: a NaN loss is shown without a sign") {
  const double negative_nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  RunProgress progress = progress_at(1);
  progress.train_loss = negative_nan;
  EpochRow row;
  row.train.set("loss", negative_nan);
  row.test.set("loss", negative_nan);
  for (const bool bar : {false, true}) {
    Console console({.bar = bar});
    console.reporter.on_start(some_start());
    console.reporter.on_progress(progress);
    console.reporter.on_epoch(row);
    CHECK(count(console.messages.text(), "loss nan") == 3);
  }
}

TEST_CASE("console: a failed run has no result, but says what it has achieved") {
  RunSummary summary = some_summary();
  summary.status = RunStatus::kFailed;
  summary.epochs_begun = 4.0;
  const auto messages_of = [&summary] {
    Console console;
    console.reporter.on_start(some_start());
    const std::size_t start = console.messages.text().size();
    console.reporter.on_finish(summary);
    CHECK(console.results.text().empty());
    return console.messages.text().substr(start);
  };
  CHECK(messages_of() == "arbalest: before it failed: test accuracy 99.12 % after 4 epochs (best 99.30 %)\n");
  summary.test.set("accuracy", {});
  CHECK(messages_of() == "arbalest: before it failed: best test accuracy 99.30 % in 4 epochs\n");
  summary.best_test.reset();
  CHECK(messages_of().empty());
}

TEST_CASE("text: numbers are formatted for people") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(grouped(-123) == "-123");
  CHECK(counted(0, "epoch") == "0 epochs");
  CHECK(counted(1, "epoch") == "1 epoch");
  CHECK(counted(1234, "mini-batch") == "1,234 mini-batches");
  CHECK(epochs_text(0.0) == "0 epochs");
  CHECK(epochs_text(1.0) == "1 epoch");
  CHECK(epochs_text(0.64) == "0.6 epochs");
  CHECK(epochs_text(0.0039) == "0.004 epochs");
  CHECK(epochs_text(2.96) == "2.96 epochs");
  CHECK(epochs_text(13.0016) == "13 epochs");
  CHECK(loss_text(0.23456) == "0.2346");
  CHECK(loss_text(786357.0) == "786357.0000");
  CHECK(loss_text(2112088695689537126400.0) == "2.112e+21");
  CHECK(loss_text(std::numeric_limits<double>::infinity()) == "inf");
  CHECK(loss_text(std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0)) == "nan");
  CHECK(duration(59.6) == "1:00");
  CHECK(duration(7) == "0:07");
  CHECK(duration(3723) == "1:02:03");
  CHECK(duration(-1) == "0:00");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(table({{"a", "bb", "1"}, {"ccc", "d", "22"}}, 2) == "a    bb   1\nccc  d   22\n");
}

TEST_CASE("inspection: the table names every layer, and JSON has the same numbers") {
  Inspection inspection;
  inspection.layers = {{"conv1", "conv", "32x20x24x24", 520, 1234567, 8}};
  inspection.batch_size = 32;
  inspection.parameters = 431080;
  inspection.learners_that_fit = 17;
  inspection.learners_per_device = {2, 3};
  inspection.memory = {{"host memory", 3 << 20, 7 << 20, 5}};
  inspection.most_learners_per_device = {4, 4};
  inspection.most_memory = {{"host memory", 5 << 20, 7 << 20, 8}};
  inspection.warnings = {"too large"};
  inspection.schedule = "cosine";
  inspection.plan = {
      {0.0, 0.25F, 5, "sma"}, {5.0, 0.25F, 5, "sma"}, {7.5, 0.25F, 4, "swap"}, {10.0, 0.0625F, 4, "swap"}};
  CHECK_THAT(to_text(inspection), ContainsSubstring("The cosine learning rate of each learner:\n"
                                                    "epochs done  learning rate  learners  synchronization\n"
                                                    "          0           0.25         5              sma\n"
                                                    "        7.5           0.25         4             swap\n"
                                                    "         10         0.0625         4             swap\n"));
  CHECK_THAT(to_text(inspection), ContainsSubstring("conv1") && ContainsSubstring("431,080") &&
                                      ContainsSubstring("1,234,567") && ContainsSubstring("17"));
  CHECK_THAT(to_text(inspection),
             ContainsSubstring("host memory, with 5 learners                        3.00 MiB\n") &&
                 ContainsSubstring("host memory, with 8 learners, the most in this run  5.00 MiB\n") &&
                 ContainsSubstring("host memory, available                              7.00 MiB\n"));
  const nlohmann::ordered_json json = to_json(inspection);
  CHECK(json["schedule"] == "cosine");
  CHECK(json["plan"][3]["epoch"] == 10.0);
  CHECK(json["plan"][3]["rate"] == 0.0625);
  CHECK(json["plan"][3]["learners"] == 4);
  CHECK(json["plan"][3]["synchronization"] == "swap");
  CHECK(json["layers"][0]["parameters"] == 520);
  CHECK(json["parameters"] == 431080);
  CHECK(json["learners_that_fit"] == 17);
  CHECK(json["team"] == 1);
  CHECK(json["memory"][0]["needed_bytes"] == 3 << 20);
  CHECK(json["memory"][0]["most_needed_bytes"] == 5 << 20);
  CHECK(json["memory"][0]["available_bytes"] == 7 << 20);
  CHECK(json["most_learners_per_device"] == std::vector<int>{4, 4});
  CHECK(json["warnings"][0] == "too large");
}

TEST_CASE("inspection: the table says how learners are divided into teams") {
  Inspection inspection;
  inspection.learners_that_fit = 1018;
  CHECK_THAT(to_text(inspection), ContainsSubstring("learners that fit on each device  1,018\n"));
  CHECK_THAT(to_text(inspection), !ContainsSubstring("team"));
  inspection.team = 4;
  inspection.team_that_fits = 2;
  CHECK_THAT(to_text(inspection), ContainsSubstring("learners of a team                                   4\n") &&
                                      ContainsSubstring("learners that fit on each device  1,018, in teams of 2\n"));
  CHECK(to_json(inspection)["team"] == 4);
  CHECK(to_json(inspection)["team_that_fits"] == 2);
  inspection.team_that_fits = 1;
  CHECK_THAT(to_text(inspection), ContainsSubstring(" 1,018, without teams\n"));
  inspection.teams_vary = true;
  CHECK_THAT(to_text(inspection), ContainsSubstring(" up to 4\n") && ContainsSubstring("device    1,018\n"));
}

TEST_CASE("console: a switch is shown with the new number of learners") {
  SwitchRow row;
  row.epoch = 2.5016;
  row.from = "s_sgd";
  row.to = "local_sgd";
  row.learners_per_device = {2, 1};
  Console two;
  two.reporter.on_start(some_start());
  two.reporter.on_switch(row);
  CHECK_THAT(two.messages.text(), ContainsSubstring("epoch 2.50: local_sgd instead of s_sgd, learners: 2 on 'cpu:0-1', "
                                                    "1 on 'cpu:2'\n"));
  RunStart start = some_start();
  start.devices = {"cpu"};
  row.learners_per_device = {1};
  Console one;
  one.reporter.on_start(start);
  one.reporter.on_switch(row);
  CHECK_THAT(one.messages.text(), ContainsSubstring("epoch 2.50: local_sgd instead of s_sgd, 1 learner\n"));
  Console quiet(ConsoleOptions{.quiet = true});
  quiet.reporter.on_start(start);
  quiet.reporter.on_switch(row);
  CHECK(quiet.messages.text().find("local_sgd") == std::string::npos);
}

}  // namespace arbalest::jobs
