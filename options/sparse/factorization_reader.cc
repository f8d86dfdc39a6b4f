#include "options/sparse/factorization_reader.h"

#include <set>
#include <utility>

#include "dataflow/models/fields/field_defaults.h"
#include "dataflow/models/fields/field_ranges.h"
#include "dataflow/models/model_reader.h"
#include "options/data/data_defaults.h"
#include "options/data/data_reader.h"
#include "options/readers/devices_reader.h"
#include "options/readers/graph_reader.h"
#include "options/readers/name_reader.h"
#include "options/readers/optimizer_reader.h"
#include "options/sparse/foreign_fields.h"
#include "options/sparse/hogwild_parts.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kKind = "hogwild on ratings, whose steps are single ratings";

bool has_factorization(const v1::Job& job) { return job.model().zoo().has_matrix_factorization(); }

void read_ratings(const v1::Job& job, JobOptions& options, dataflow::FieldIssues& issues) {
  if (!job.data().has_ratings()) {
    issues.add("data",
               "matrix factorization reads ratings; add data { ratings { directory: ... sizes: USERS sizes: ITEMS } }");
    return;
  }
  options.data = read_data(job.data(), issues);
  if (options.data.validation_files) {
    issues.add("data.ratings.validation_ids",
               "hogwild is judged by its test set alone; remove validation_ids and validation_targets");
  }
}

// Names all fields that have no meaning here, together with the other mistakes.
void refuse_others(const v1::Job& job, dataflow::FieldIssues& issues) {
  std::set<std::string> known = hogwild_rate_fields();
  known.insert({"name", "model.zoo.matrix_factorization", "training.max_epochs", "training.seed",
                "optimizer.sgd.weight_decay", "synchronization.hogwild", "learners.per_device.fixed", "devices"});
  known.insert(job.data().has_ratings() ? "data.ratings" : "data");
  refuse_foreign_fields(job, known, kKind, issues);
}

}  // namespace

bool is_factorization(const v1::Job& job) {
  return job.synchronization().has_hogwild() && has_factorization(job) && !job.data().has_libsvm();
}

void fill_factorization_defaults(v1::Job& job, const std::string& file) {
  if (!job.has_name()) job.set_name(name_after(file));
  if (job.has_model()) dataflow::fill_defaults(*job.mutable_model());
  if (job.data().has_ratings()) fill_defaults(*job.mutable_data(), file);
  v1::Training& training = *job.mutable_training();
  dataflow::fill_field(training, "max_epochs");
  dataflow::fill_field(training, "seed");
  if (job.optimizer().kind_case() == v1::Optimizer::KIND_NOT_SET || job.optimizer().has_sgd()) {
    dataflow::fill_field(*job.mutable_optimizer()->mutable_sgd(), "weight_decay");
  }
  fill_hogwild(job);
  if (job.devices().empty()) job.add_devices("cpu");
}

JobOptions read_factorization_job(v1::Job& job, dataflow::FieldIssues& issues) {
  JobOptions options;
  options.name = read_name(job, issues);
  read_ratings(job, options, issues);
  issues.add("training.max_epochs", dataflow::field_problem(job.training(), "max_epochs"));
  options.training.max_epochs = job.training().max_epochs();
  options.training.seed = job.training().seed();
  if (job.optimizer().has_sgd()) options.optimizer = read_optimizer(job.optimizer(), issues);  // others are refused
  options.sparse.emplace().scheme = read_hogwild(job, issues);
  options.devices = read_devices(job, issues);
  refuse_gpus(options, "hogwild", issues);
  read_fixed_learners(job, options, issues);
  refuse_others(job, issues);
  GraphContext context;
  if (options.data.input.is_known()) context.input = options.data.input;
  options.graph = read_graph(job.model(), context, issues);
  return options;
}

}  // namespace arbalest::jobs
