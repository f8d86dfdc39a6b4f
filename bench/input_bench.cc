// How many images per second does the input pipeline deliver, and how close is this to the decoder's speed? (Formulas:
// bench/README.md.)
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "bench/support/bare_jpeg.h"
#include "bench/support/harness.h"
#include "bench/support/job_arguments.h"
#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/example.h"
#include "dataflow/input/formats/image_files.h"
#include "dataflow/input/images/framing.h"
#include "dataflow/input/images/image_decoder.h"
#include "engine/host/topology.h"
#include "train/data/dataset_loading.h"
#include "train/session/session.h"

namespace arbalest::bench {
namespace {

struct Arguments {
  JobArguments job{.file = "configs/lenet-caltech10.txtpb"};
  int turns = 15;
};

// Reads the training set through a ring, like learners.
class Pipeline {
 public:
  Pipeline(const jobs::JobOptions& job, const std::string& data_root)
      : batch_(job.training.batch_size),
        data_(jobs::load_dataset(job.data, data_root, dataflow::Split::kTrain, pool_, warnings_)),
        order_(data_->size(), batch_, job.training.seed),
        ring_(*data_, order_, *device_, pool_, kSlots) {}

  // Batches per call of deliver(). The number is many times the number of slots, because slots that were filled during
  // other turns cost no time.
  static constexpr int kBatches = 128;
  std::int64_t images() const { return kBatches * batch_; }

  void deliver() {
    for (int i = 0; i < kBatches; ++i) ring_.release(ring_.next()->number);
  }

 private:
  static constexpr int kSlots = 8;

  std::int64_t batch_;
  std::vector<std::string> warnings_;
  std::unique_ptr<engine::Device> device_ = engine::open_device(engine::parse_device("cpu"));
  engine::host::Pool pool_{engine::host::usable_cores()};
  std::unique_ptr<dataflow::Dataset> data_;
  dataflow::ShuffledOrder order_;
  dataflow::BatchRing ring_;
};

// Reads some of a job's JPEG files on one thread: by the dataset, by our decoder and by the bare library.
class Decoding {
 public:
  Decoding(const jobs::DataOptions& data, const std::string& data_root)
      : framing_{.resize = data.resize, .random_crop = {}, .seed = 0},
        rules_(data.pixels),
        target_{static_cast<int>(data.input.image()[2]), static_cast<int>(data.input.image()[1])},
        example_(data.input) {
    const dataflow::ImageFilesSource source{std::filesystem::path(data_root) / data.directory, data.train, data.test};
    std::vector<std::string> warnings;
    auto examples = dataflow::open_image_files(source, dataflow::Split::kTrain, data.input.classes(), warnings);
    const std::int64_t stride = std::max<std::int64_t>(1, examples->size() / kFiles);
    for (std::int64_t i = 0; i < examples->size() && std::ssize(chosen_) < kFiles; i += stride) {
      std::vector<std::uint8_t> file = examples->read(i);
      if (file.size() < 2 || file[0] != 0xFF || file[1] != 0xD8) continue;  // a PNG
      chosen_.push_back(i);
      eighths_.push_back(eighths(file));
      files_.push_back(std::move(file));
    }
    images_.emplace("decoding", data.input, data.normalization, std::move(examples), framing_, rules_,
                    data.on_unreadable);
  }

  std::int64_t images() const { return std::ssize(files_); }
  void read() {
    for (const std::int64_t example : chosen_) images_->read(example, {}, example_.features());
  }
  void decode() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto all = [&](dataflow::ImageSides sides) {
        const auto scaled = [&](int side) { return static_cast<int>(side * eighths_[i] / kEighths); };
        return dataflow::WantedPart{{0.0, 0.0, static_cast<double>(sides.width), static_cast<double>(sides.height)},
                                    {scaled(sides.width), scaled(sides.height)}};
      };
      dataflow::decode_image(files_[i], 3, rules_, all);
    }
  }
  void decode_by_library() {
    for (std::size_t i = 0; i < files_.size(); ++i) decode_bare(files_[i], eighths_[i], pixels_);
  }

 private:
  static constexpr std::int64_t kFiles = 64;
  static constexpr unsigned kEighths = 8;

  // Returns the scale at which the dataset decodes the file.
  unsigned eighths(std::span<const std::uint8_t> file) const {
    const auto choose = [&](dataflow::ImageSides sides) {
      return dataflow::WantedPart{frame(framing_, sides, target_, {}), target_};
    };
    return static_cast<unsigned>(std::lround(kEighths * dataflow::decode_image(file, 3, rules_, choose).scale));
  }

  dataflow::Framing framing_;
  dataflow::PixelRules rules_;
  dataflow::ImageSides target_;
  dataflow::Example example_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::int64_t> chosen_;
  std::vector<unsigned> eighths_;
  std::vector<std::vector<std::uint8_t>> files_;
  std::optional<dataflow::EncodedImages> images_;
};

int run(const Arguments& arguments) {
  const jobs::JobOptions job = arguments.job.load();
  Pipeline pipeline(job, arguments.job.data_root);
  jobs::Session session(job, arguments.job.data_root, {});
  constexpr int kRounds = 4;
  const std::int64_t trained = kRounds * std::int64_t{job.synchronization.period} * job.training.batch_size *
                               std::accumulate(job.learners_per_device.begin(), job.learners_per_device.end(), 0);
  std::optional<Decoding> decoding;
  if (job.data.kind == jobs::DataOptions::Kind::kImages) decoding.emplace(job.data, arguments.job.data_root);

  std::vector<Contender> contenders{{"pipeline", [&] { pipeline.deliver(); }}, {"training", [&] {
                                                                                  session.scheduler().advance(
                                                                                      session.training_ring(), kRounds);
                                                                                  session.scheduler().drain();
                                                                                }}};
  std::vector<std::int64_t> images{pipeline.images(), trained};
  if (decoding) {
    contenders.push_back({"dataset, one thread", [&] { decoding->read(); }});
    contenders.push_back({"decoding, one thread", [&] { decoding->decode(); }});
    contenders.push_back({"libjpeg-turbo, one thread", [&] { decoding->decode_by_library(); }});
    images.insert(images.end(), 3, decoding->images());
  }
  const std::vector<Measurement> results =
      measure_in_turns(contenders, {.turns = arguments.turns, .seconds_per_turn = 0.3});
  nlohmann::ordered_json fields{{"job", job.name}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const double rate = static_cast<double>(images[i]) / results[i].seconds;
    nlohmann::ordered_json contender = to_json(results[i]);
    contender["images_per_second"] = rate;
    fields["contenders"].push_back(contender);
    fmt::print(stderr, "{:<26} {:>8.0f} images/s  spread {:.1f} %\n", results[i].name, rate, 100 * results[i].spread);
  }
  const auto rate = [&](std::size_t i) { return static_cast<double>(images[i]) / results[i].seconds; };
  fields["pipeline_over_training"] = rate(0) / rate(1);
  fields["target_pipeline_over_training"] = 5.0;
  if (decoding) {
    fields["reading_of_library"] = rate(2) / rate(4);
    fields["decoding_of_library"] = rate(3) / rate(4);
    fields["target_decoding_of_library"] = 0.9;
  }
  print_result("input", fields);
  return 0;
}

}  // namespace
}  // namespace arbalest::bench

int main(int argc, char** argv) {
  CLI::App app{"The input pipeline alone against the training that it feeds, and decoding against libjpeg-turbo."};
  arbalest::bench::Arguments arguments;
  arbalest::bench::add_job(app, arguments.job);
  app.add_option("--turns", arguments.turns, "turns of each")->check(CLI::Range(3, 1000));
  return arbalest::bench::run_program(app, argc, argv, [&] { return arbalest::bench::run(arguments); });
}
