#include "fetch/dataset_downloads.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"

namespace arbalest::jobs {

namespace {

// The checksums of MNIST, Fashion-MNIST, and of both archives of CIFAR are also in the lists of TensorFlow Datasets:
// https://github.com/tensorflow/datasets/tree/master/tensorflow_datasets/url_checksums (mnist.txt, fashion_mnist.txt,
// cifar10.txt, cifar100.txt).

DatasetDownloads mnist() {
  const std::vector<std::string> folders = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                                            "https://storage.googleapis.com/cvdf-datasets/mnist"};
  return {"mnist",
          "mnist",
          {{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            folders},
           {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            folders},
           {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            folders},
           {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            folders}}};
}

// The first folder is the publisher's repository. The server that its page names has no HTTPS.
DatasetDownloads fashion_mnist() {
  const std::vector<std::string> folders = {
      "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
      "https://storage.googleapis.com/tensorflow/tf-keras-datasets"};
  return {"fashion_mnist",
          "fashion-mnist",
          {{"train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            folders},
           {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            folders},
           {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            folders},
           {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            folders}}};
}

constexpr const char* kCifarFolder = "https://www.cs.toronto.edu/~kriz";

DatasetDownloads cifar10() {
  constexpr std::uint64_t kBatchBytes = 30'730'000;  // 10,000 records of 3,073 bytes
  const auto member = [](const char* name, const char* sha256) {
    return ArchiveMember{std::string("cifar-10-batches-bin/") + name, name, kBatchBytes, sha256};
  };
  return {"cifar10",
          "cifar-10",
          {{"cifar-10-binary.tar.gz",
            170052171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            {kCifarFolder},
            {member("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"),
             member("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"),
             member("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"),
             member("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"),
             member("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"),
             member("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"),
             {"cifar-10-batches-bin/batches.meta.txt", "batches.meta.txt", 61,
              "558e74b5e208382e186da55784b4bac2cd52e558448e1b5800990fdb28ed8033"}}}}};
}

// The files in CIFAR-100's archive are checked by what is known of them: no checksums are published.
constexpr int kCifar100RecordBytes = 3'074;  // the numbers of superclass and class, then 3 x 32 x 32 pixels
constexpr int kClasses = 100;
constexpr int kSuperclasses = 20;
constexpr int kClassesOfOne = kClasses / kSuperclasses;

// The two functions below return why the file is not the published one, or "" if it may be.
// `per_class`: the images that each of the 100 classes has in the file. The 20 superclasses have 5 classes each.
std::string problem_of_cifar100_records(const std::filesystem::path& path, int per_class) {
  std::ifstream file(path, std::ios::binary);
  std::array<int, kClasses> images{};
  std::array<int, kClasses> superclass_of{};
  superclass_of.fill(-1);
  std::array<int, kSuperclasses> classes{};
  std::array<char, kCifar100RecordBytes> record{};
  std::int64_t number = 0;
  for (; file.read(record.data(), record.size()); ++number) {
    const auto superclass = static_cast<std::uint8_t>(record[0]);
    const auto label = static_cast<std::uint8_t>(record[1]);
    if (superclass >= kSuperclasses || label >= kClasses) {
      return fmt::format("record {} has the superclass {} and the class {}", number, superclass, label);
    }
    int& known = superclass_of.at(label);
    if (known < 0) ++classes.at(superclass);
    if (known >= 0 && known != superclass) {
      return fmt::format("record {} puts the class {} into the superclass {}, and earlier ones into {}", number, label,
                         superclass, known);
    }
    known = superclass;
    ++images.at(label);
  }
  if (file.gcount() != 0 || !file.eof()) return "it cannot be read as records to its end";
  for (int label = 0; label < kClasses; ++label) {
    const int count = images.at(static_cast<std::size_t>(label));
    if (count != per_class) return fmt::format("it has {} images of the class {}, and not {}", count, label, per_class);
  }
  const auto wrong = std::ranges::find_if(classes, [](int count) { return count != kClassesOfOne; });
  if (wrong == classes.end()) return "";
  return fmt::format("its superclass {} has {} classes, and not {}", wrong - classes.begin(), *wrong, kClassesOfOne);
}

// `names`: how many different names the file has, one a line.
std::string problem_of_class_names(const std::filesystem::path& path, int names) {
  std::ifstream file(path);
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) {  // empty lines may stand at the end only
      while (std::getline(file, line)) {
        if (!line.empty()) return fmt::format("line {} is empty", found.size() + 1);
      }
      break;
    }
    if (!found.insert(line).second) return fmt::format("the name '{}' repeats", line);
  }
  if (!file.eof()) return "it cannot be read";
  if (std::ssize(found) == names) return "";
  return fmt::format("it has {} names, and not {}", found.size(), names);
}

DatasetDownloads cifar100() {
  const auto records = [](const char* name, std::uint64_t per_class) {
    return ArchiveMember{.path = std::string("cifar-100-binary/") + name,
                         .name = name,
                         .bytes = 100 * per_class * kCifar100RecordBytes,
                         .problem = [per_class](const std::filesystem::path& path) {
                           return problem_of_cifar100_records(path, static_cast<int>(per_class));
                         }};
  };
  const auto names = [](const char* name, int count) {
    return ArchiveMember{
        .path = std::string("cifar-100-binary/") + name,
        .name = name,
        .problem = [count](const std::filesystem::path& path) { return problem_of_class_names(path, count); }};
  };
  return {"cifar100",
          "cifar-100",
          {{"cifar-100-binary.tar.gz",
            168513733,
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            {kCifarFolder},
            {records("train.bin", 500), records("test.bin", 100), names("fine_label_names.txt", 100),
             names("coarse_label_names.txt", 20)}}}};
}

}  // namespace

const std::vector<DatasetDownloads>& known_downloads() {
  static const std::vector<DatasetDownloads> kKnown = {mnist(), fashion_mnist(), cifar10(), cifar100()};
  return kKnown;
}

const DatasetDownloads& downloads_of(const std::string& name) {
  const auto found = std::ranges::find_if(
      known_downloads(), [&](const DatasetDownloads& known) { return known.name == name || known.folder == name; });
  if (found != known_downloads().end()) return *found;
  std::vector<std::string> names;
  for (const DatasetDownloads& known : known_downloads()) names.push_back(known.name);
  engine::fail(engine::ErrorKind::kUsage, "there is no dataset '{}' to fetch; there are {}", name,
               fmt::join(names, ", "));
}

}  // namespace arbalest::jobs
