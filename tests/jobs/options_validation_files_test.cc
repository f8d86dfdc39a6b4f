// Files of a validation set in a job: consequences, and errors.
#include "tests/jobs/job_text.h"

namespace arbalest::jobs {

namespace {

// Returns the valid job with these data from line 3 on.
std::string with_data(std::string_view data) { return changed("data { digits {} }", data); }

// Returns the first line of the error for a job.
std::string said_of(const std::string& text) {
  const std::string said = refusal(text);
  return said.substr(0, said.find('\n'));
}

DataOptions read(std::string_view data) { return parse(with_data(data)).data; }

constexpr const char* kNpy = "data { npy { directory: 'a' classes: 10 height: 28 width: 28 channels: 1\n";
constexpr const char* kImages =
    "data { images { directory: 'a' classes: 10 decoding { height: 28 width: 28 channels: 1 }\n";

}  // namespace

TEST_CASE("a validation set has files of its own if the job names them") {
  CHECK_FALSE(read("data { mnist {} }").validation_files.has_value());
  CHECK_FALSE(read("data { mnist {} }").has_validation());
  const DataOptions mnist = read("data { mnist { validation_images: 'i' validation_labels: 'l' } }");
  REQUIRE(mnist.validation_files.has_value());
  CHECK(mnist.has_validation());
  CHECK_FALSE(mnist.validation.has_value());
  CHECK(mnist.validation_files->examples == "i");
  CHECK(mnist.validation_files->labels == "l");
  CHECK(mnist.training_examples == 60'000);
  CHECK_FALSE(mnist.validation_examples.has_value());
  const DataOptions images = read(std::string(kImages) + "validation: 'val' } }");
  CHECK(images.validation_files.value().examples == "val");
  CHECK(images.validation_files->labels.empty());
  const DataOptions arrays = read(std::string(kNpy) + "validation_images: 'v.npy' validation_labels: 'w.npy' } }");
  CHECK(arrays.validation_files.value().labels == "w.npy");
  const JobOptions job = parse(with_data("data { mnist { validation_images: 'i' validation_labels: 'l' } }"));
  CHECK_THAT(job.resolved_text, ContainsSubstring("validation_images: \"i\""));
  CHECK(parse(job.resolved_text).data.validation_files.value().labels == "l");
}

TEST_CASE("a training file of CIFAR-10 that validates leaves the training set") {
  const auto sizes = [](const std::string& data, const std::vector<std::string>& settings = {}) {
    const DataOptions options = parse(with_data("data { " + data + " }"), settings).data;
    return std::pair(options.training_examples.value(), options.validation_examples);
  };
  using Sizes = std::pair<std::int64_t, std::optional<std::int64_t>>;
  CHECK(sizes("cifar10 {}") == Sizes{50'000, 0});
  CHECK(sizes("cifar10 { validation: 'data_batch_2.bin' }") == Sizes{40'000, 10'000});
  CHECK(sizes("cifar10 { validation: './data_batch_2.bin' }") == Sizes{40'000, 10'000});
  CHECK(sizes("cifar10 { validation: 'mine.bin' }") == Sizes{50'000, std::nullopt});
  CHECK(sizes("cifar100 { validation: 'mine.bin' }") == Sizes{50'000, std::nullopt});
  CHECK_THAT(refusal(with_data("data { cifar10 { validation: 'data_batch_2.bin' } }"), {"training.batch_size=40001"},
                     engine::ErrorKind::kUsage),
             ContainsSubstring("the training set of cifar10 (40000 examples without those that validate)"));
}

TEST_CASE("wrong files of a validation set are refused at their position") {
  const std::string images = kImages;
  CHECK(
      said_of(with_data(images + "validation: 'val' }\nvalidation { fraction: 0.1 } }")) ==
      "job.txtpb:5:1: error: validation splits a part off the training set, and data.images.validation names files of "
      "a validation set; remove one of them");
  CHECK(said_of(with_data(images + "validation: '' } }")) ==
        "job.txtpb:4:1: error: validation is empty; leave it out if the validation set has no files");
  CHECK_THAT(said_of(with_data(images + "validation: 'train' } }")),
             ContainsSubstring("job.txtpb:4:1: error: validation names the training set, 'train': the run would be "
                               "judged by examples that it has learned"));
  CHECK_THAT(said_of(with_data(images + "validation: './test/' } }")),
             ContainsSubstring("job.txtpb:4:1: error: validation names the test set, './test/', but the test set "
                               "must not choose the model"));
  CHECK_THAT(said_of(with_data(images + "test: 'val' validation: 'val' } }")),
             ContainsSubstring("job.txtpb:4:13: error: validation names the test set"));
  CHECK_THAT(said_of(with_data("data { tfrecord { directory: 'a' classes: 10 validation: 'test-*'\n"
                               "decoding { height: 28 width: 28 channels: 1 } } }")),
             ContainsSubstring("job.txtpb:3:46: error: validation names the test set, 'test-*'"));
  CHECK(said_of(with_data(std::string(kNpy) + "validation_images: 'v.npy' } }")) ==
        "job.txtpb:3:8: error: validation_labels is missing: the file that belongs to validation_images, 'v.npy'");
  CHECK(said_of(with_data(std::string(kNpy) + "validation_labels: 'v.npy' } }")) ==
        "job.txtpb:3:8: error: validation_images is missing: the file that belongs to validation_labels, 'v.npy'");
  CHECK_THAT(said_of(with_data(std::string(kNpy) + "validation_images: 'train_images.npy' validation_labels: 'l' } }")),
             ContainsSubstring("validation_images names the training set, 'train_images.npy'"));
  CHECK_THAT(
      said_of(with_data("data { mnist { validation_images: 't10k-images-idx3-ubyte.gz' validation_labels: 'l' } }")),
      ContainsSubstring("job.txtpb:3:16: error: validation_images names the test set"));
  CHECK_THAT(said_of(with_data("data { cifar100 { validation: 'train.bin' } }")),
             ContainsSubstring("validation names the training set, 'train.bin'"));
  CHECK_THAT(said_of(with_data("data { cifar10 { validation: 'test_batch.bin' } }")),
             ContainsSubstring("validation names the test set, 'test_batch.bin'"));
  CHECK(said_of(with_data("data { digits { validation: 'val' } }")).starts_with("job.txtpb:3:17: error: "));
  CHECK_THAT(said_of(with_data(images + "val: 'val' } }")),
             ContainsSubstring("job.txtpb:4:1: error: ") && ContainsSubstring("did you mean 'validation'?"));
}

TEST_CASE("ratings name both files of a validation set") {
  const auto with = [](const std::string& more) {
    return "model { zoo { matrix_factorization { width: 2 } } }\ndata { ratings { directory: 'a' sizes: 10 sizes: 6\n" +
           more + " } }\nlearning_rate { base: 0.01 }";
  };
  const DataOptions data = parse(with("validation_ids: 'i.npy' validation_targets: 't.npy'")).data;
  CHECK(data.validation_files.value().examples == "i.npy");
  CHECK(data.validation_files->labels == "t.npy");
  CHECK_THAT(said_of(with("validation_ids: 'i.npy'")), ContainsSubstring("error: validation_targets is missing"));
  CHECK_THAT(said_of(with("validation_ids: 'test_ids.npy' validation_targets: 't.npy'")),
             ContainsSubstring("job.txtpb:3:1: error: validation_ids names the test set"));
}

TEST_CASE("the warning about a target that only a perfect model reaches says what to do about files") {
  const auto warnings = [](std::string_view target) {
    return parse(with_data("data { cifar10 { validation: 'data_batch_5.bin' } }"),
                 {"training.target_accuracy=" + std::string(target)})
        .warnings;
  };
  CHECK(warnings("0.9").empty());
  REQUIRE(warnings("0.99999").size() == 1);
  CHECK_THAT(warnings("0.99999")[0], ContainsSubstring("with 10,000 examples to validate with") &&
                                         ContainsSubstring("add examples to the validation set"));
}

}  // namespace arbalest::jobs
