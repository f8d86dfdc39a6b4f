#include "options/sparse/sparse_reader.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"
#include "messages/text.h"
#include "options/data/data_defaults.h"
#include "options/readers/devices_reader.h"
#include "options/readers/name_reader.h"
#include "options/readers/processes_reader.h"
#include "options/sparse/factorization_reader.h"
#include "options/sparse/foreign_fields.h"
#include "options/sparse/hogwild_parts.h"

namespace arbalest::jobs {

using dataflow::fill_field;
using dataflow::fill_fields;
using dataflow::out_of_range;

namespace {

constexpr int kDefaultEpochs = 100;  // of delayed_proximal, which ends by its tolerance
constexpr int kDefaultBlocks = 16;
constexpr const char* kModel = "model { sparse_logistic {} }";
constexpr const char* kProximal = "synchronization.delayed_proximal";

// The coordinates of the model that `job` describes; at least 1.
int coordinates_of(const v1::Job& job) {
  const v1::Libsvm& source = job.data().libsvm();
  const int features = dataflow::field_problem(source, "features").empty() ? source.features() : 0;
  return std::max(1, features + (job.model().sparse_logistic().bias() ? 1 : 0));
}

class SparseReader {
 public:
  SparseReader(v1::Job& job, dataflow::FieldIssues& issues) : job_(job), issues_(issues) {}

  JobOptions read() {
    if (is_of_another_model()) {
      issues_.add(kProximal, fmt::format("delayed_proximal is for {}, and the job has another model; choose another "
                                         "scheme",
                                         kModel));
      return std::move(options_);
    }
    options_.name = read_name(job_, issues_);
    read_model();
    read_data();
    read_training();
    read_scheme();
    if (job_.synchronization().has_delayed_proximal()) options_.processes = read_processes(job_.processes(), issues_);
    options_.devices = read_devices(job_, issues_);
    refuse_gpus(options_, "sparse_logistic", issues_);
    read_fixed_learners(job_, options_, issues_);
    refuse_others();
    options_.sparse = std::move(sparse_);
    return std::move(options_);
  }

 private:
  // Whether nothing but the scheme makes this a job over sparse rows.
  bool is_of_another_model() const {
    const v1::Model& model = job_.model();
    return (model.has_zoo() || !model.layers().empty()) && !model.has_sparse_logistic() && !job_.data().has_libsvm();
  }

  void read_model() {
    if (!job_.model().has_sparse_logistic()) {
      issues_.add(job_.has_model() ? "model" : "model.sparse_logistic",
                  fmt::format("libsvm and delayed_proximal are for {}; add that", kModel));
    }
    sparse_.bias = job_.model().sparse_logistic().bias();
  }

  void read_data() {
    if (!job_.data().has_libsvm()) {
      issues_.add("data", "sparse_logistic reads sparse rows; add data { libsvm { directory: ... features: ... } }");
      return;
    }
    const v1::Libsvm& source = job_.data().libsvm();
    const std::string path = "data.libsvm.";
    sparse_.directory = source.directory();
    sparse_.train = source.train();
    sparse_.test = source.test();
    sparse_.features = source.features();
    dataflow::check_fields(source, "data.libsvm", issues_);
    if (source.train().empty()) issues_.add(path + "train", "train is empty; leave it out to get its default");
    if (source.test().empty()) issues_.add(path + "test", "test is empty; leave it out to get its default");
  }

  void read_training() {
    issues_.add("training.max_epochs", dataflow::field_problem(job_.training(), "max_epochs"));
    options_.training.max_epochs = job_.training().max_epochs();
    options_.training.seed = job_.training().seed();
  }

  void read_scheme() {
    const v1::Synchronization& synchronization = job_.synchronization();
    if (synchronization.has_delayed_proximal()) {
      sparse_.scheme = read_proximal(synchronization.delayed_proximal());
    } else if (synchronization.has_hogwild()) {
      sparse_.scheme = read_hogwild(job_, issues_);
    } else {
      // refuse_others() has nothing to add to the path of a foreign scheme.
      const google::protobuf::FieldDescriptor* const foreign = synchronization.GetReflection()->GetOneofFieldDescriptor(
          synchronization, v1::Synchronization::descriptor()->FindOneofByName("kind"));
      issues_.add(foreign == nullptr ? "synchronization" : "synchronization." + foreign->name(),
                  fmt::format("sparse_logistic is trained by synchronization {{ delayed_proximal {{ l1: ... }} }} or "
                              "{{ hogwild {{}} }}{}; choose one",
                              foreign == nullptr ? "" : ", not by " + foreign->name()));
    }
  }

  DelayedProximalOptions read_proximal(const v1::DelayedProximal& message) {
    dataflow::check_fields(message, kProximal, issues_);
    issues_.add(std::string(kProximal) + ".first_bound",
                out_of_range("first_bound", message.first_bound(), dataflow::above(0.0, message.largest_bound())));
    read_blocks(message);
    return {.solver = {.blocks = message.blocks(),
                       .max_delay = message.max_delay(),
                       .l1 = message.l1(),
                       .step = message.step(),
                       .bias = sparse_.bias,
                       .seed = options_.training.seed,
                       .first_bound = message.first_bound(),
                       .largest_bound = message.largest_bound()},
            .tolerance = message.tolerance()};
  }

  void read_blocks(const v1::DelayedProximal& message) {
    const std::string path = std::string(kProximal) + ".";
    const int coordinates = coordinates_of(job_);
    if (message.blocks() > coordinates && !issues_.has("data.libsvm.features")) {
      issues_.add(
          path + "blocks",
          fmt::format("blocks must be at most the {} of the model (data.libsvm.features{}), not {}",
                      counted(coordinates, "coordinate"), sparse_.bias ? " and the bias" : "", message.blocks()));
    }
    if (message.max_delay() < 0) {
      issues_.add(path + "max_delay",
                  fmt::format("max_delay must be at least 0, not {}; 0 is block after block", message.max_delay()));
    } else if (message.max_delay() >= message.blocks() && message.blocks() >= 1) {
      issues_.add(path + "max_delay", fmt::format("max_delay must be below the number of blocks: {} is not below {}",
                                                  message.max_delay(), message.blocks()));
    }
  }

  // Names all fields that have no meaning here, together with the other mistakes. Without a scheme, fields that one of
  // the schemes knows may have a meaning.
  void refuse_others() {
    std::set<std::string> known = {"name",
                                   "model.sparse_logistic",
                                   "data",
                                   "training.max_epochs",
                                   "training.seed",
                                   "synchronization.delayed_proximal",
                                   "synchronization.hogwild",
                                   "learners.per_device.fixed",
                                   "devices"};
    if (job_.data().has_libsvm()) {
      known.erase("data");
      known.insert("data.libsvm");
    }
    if (!job_.synchronization().has_hogwild()) known.insert("processes.peer_timeout_seconds");
    if (!job_.synchronization().has_delayed_proximal()) known.merge(hogwild_rate_fields());
    refuse_foreign_fields(job_, known, kModel, issues_);
  }

  v1::Job& job_;
  dataflow::FieldIssues& issues_;
  JobOptions options_;
  SparseOptions sparse_;
};

}  // namespace

bool is_sparse(const v1::Job& job) {
  return job.model().has_sparse_logistic() || job.data().has_libsvm() || job.synchronization().has_delayed_proximal() ||
         is_factorization(job);
}

void fill_sparse_defaults(v1::Job& job, const std::string& file) {
  if (is_factorization(job)) return fill_factorization_defaults(job, file);
  if (!job.has_name()) job.set_name(name_after(file));
  if (job.model().has_sparse_logistic()) fill_fields(*job.mutable_model()->mutable_sparse_logistic());
  if (job.data().has_libsvm()) fill_defaults(*job.mutable_data(), file);
  v1::Training& training = *job.mutable_training();
  const bool is_proximal = job.synchronization().has_delayed_proximal();
  if (is_proximal && !training.has_max_epochs()) training.set_max_epochs(kDefaultEpochs);
  fill_field(training, "max_epochs");
  fill_field(training, "seed");
  if (is_proximal) {
    fill_field(*job.mutable_processes(), "peer_timeout_seconds");
    v1::DelayedProximal& scheme = *job.mutable_synchronization()->mutable_delayed_proximal();
    if (!scheme.has_blocks()) scheme.set_blocks(std::min(kDefaultBlocks, coordinates_of(job)));
    fill_fields(scheme);
  }
  if (job.synchronization().has_hogwild()) fill_hogwild(job);
  if (job.devices().empty()) job.add_devices("cpu");
}

JobOptions read_sparse_job(v1::Job& job, dataflow::FieldIssues& issues) {
  return is_factorization(job) ? read_factorization_job(job, issues) : SparseReader(job, issues).read();
}

}  // namespace arbalest::jobs
