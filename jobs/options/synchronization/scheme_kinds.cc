#include "jobs/options/synchronization/scheme_kinds.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace arbalest::jobs {

using dataflow::above;
using dataflow::below;
using dataflow::out_of_range;
using sma::LocalState;
using sma::Options;
using sma::Scheme;

namespace {

constexpr int kMaxPulledPeriod = 1000;  // learners hold the results of a whole round
constexpr int kMaxPeriod = 100000;
constexpr double kMaxBucketMb = 1024.0;
constexpr int kMostStaleness = 1000;
constexpr double kMegabyte = 1 << 20;

v1::Synchronization::LocalState message_of(LocalState state) {
  switch (state) {
    case LocalState::kZero:
      return v1::Synchronization::ZERO;
    case LocalState::kAverage:
      return v1::Synchronization::AVERAGE;
    case LocalState::kKeep:
      break;
  }
  return v1::Synchronization::KEEP;
}

LocalState local_state_of(v1::Synchronization::LocalState state) {
  if (state == v1::Synchronization::ZERO) return LocalState::kZero;
  return state == v1::Synchronization::AVERAGE ? LocalState::kAverage : LocalState::kKeep;
}

// Sets the defaults of a scheme that assigns the center.
template <typename Kind>
void fill_outer(Kind& kind, const Options& defaults) {
  if (!kind.has_rate()) kind.set_rate(defaults.outer_rate);
  if (!kind.has_momentum() && defaults.momentum) kind.set_momentum(*defaults.momentum);
  if (!kind.has_period()) kind.set_period(defaults.period);
  if (!kind.has_local_state()) kind.set_local_state(message_of(defaults.local_state));
}

void fill(v1::Sma& kind) {
  const Options defaults = sma::defaults_of(Scheme::kSma);
  if (!kind.has_central_momentum()) kind.set_central_momentum(*defaults.momentum);
  if (!kind.has_period()) kind.set_period(defaults.period);
}

void fill(v1::EaSgd& kind) {
  const Options defaults = sma::defaults_of(Scheme::kEaSgd);
  if (!kind.has_beta()) kind.set_beta(defaults.pull_of_all);
  if (!kind.has_period()) kind.set_period(defaults.period);
}

void fill(v1::SSgd& kind) {
  const auto bytes = static_cast<double>(sma::defaults_of(Scheme::kSSgd).bucket_bytes);
  if (!kind.has_bucket_mb()) kind.set_bucket_mb(bytes / kMegabyte);
}

void fill(v1::LocalSgd& kind) {
  const Options defaults = sma::defaults_of(Scheme::kLocalSgd);
  if (!kind.has_period()) kind.set_period(defaults.period);
  if (!kind.has_local_state()) kind.set_local_state(message_of(defaults.local_state));
}

void fill(v1::Bmuf& kind) {
  const Options defaults = sma::defaults_of(Scheme::kBmuf);
  fill_outer(kind, defaults);
  if (!kind.has_nesterov()) kind.set_nesterov(defaults.nesterov);
}

void fill(v1::SlowMo& kind) { fill_outer(kind, sma::defaults_of(Scheme::kSlowMo)); }
void fill(v1::Diloco& kind) { fill_outer(kind, sma::defaults_of(Scheme::kDiloco)); }
void fill(v1::Lookahead& kind) { fill_outer(kind, sma::defaults_of(Scheme::kLookahead)); }
void fill(v1::IndependentLearners& /*kind*/) {}
void fill(v1::Hogwild& /*kind*/) {}

void fill(v1::AsyncSgd& kind) {
  const Options defaults = sma::defaults_of(Scheme::kAsyncSgd);
  if (!kind.has_push_every()) kind.set_push_every(defaults.period);
  if (!kind.has_warm_start_epochs()) kind.set_warm_start_epochs(0.0);
}

// Calls visit(kind, "sma") with the chosen alternative; returns false if there is none. Message: Synchronization or
// Switch, which have the same alternatives.
template <typename Message, typename Visit>
bool visit_kind(Message& message, const Visit& visit) {
  const auto try_kind = [&](bool is_chosen, auto&& get, const char* name) {
    if (is_chosen) visit(get(), name);
    return is_chosen;
  };
  return try_kind(
             message.has_sma(), [&]() -> auto& { return *message.mutable_sma(); }, "sma") ||
         try_kind(
             message.has_ea_sgd(), [&]() -> auto& { return *message.mutable_ea_sgd(); }, "ea_sgd") ||
         try_kind(
             message.has_s_sgd(), [&]() -> auto& { return *message.mutable_s_sgd(); }, "s_sgd") ||
         try_kind(
             message.has_local_sgd(), [&]() -> auto& { return *message.mutable_local_sgd(); }, "local_sgd") ||
         try_kind(
             message.has_bmuf(), [&]() -> auto& { return *message.mutable_bmuf(); }, "bmuf") ||
         try_kind(
             message.has_slow_mo(), [&]() -> auto& { return *message.mutable_slow_mo(); }, "slow_mo") ||
         try_kind(
             message.has_diloco(), [&]() -> auto& { return *message.mutable_diloco(); }, "diloco") ||
         try_kind(
             message.has_lookahead(), [&]() -> auto& { return *message.mutable_lookahead(); }, "lookahead") ||
         try_kind(
             message.has_swap(), [&]() -> auto& { return *message.mutable_swap(); }, "swap") ||
         try_kind(
             message.has_hogwild(), [&]() -> auto& { return *message.mutable_hogwild(); }, "hogwild") ||
         try_kind(
             message.has_async_sgd(), [&]() -> auto& { return *message.mutable_async_sgd(); }, "async_sgd");
}

// Reads the alternatives of a oneof into sma::Options. `path`: path of the alternative.
class KindReader {
 public:
  KindReader(std::string path, dataflow::FieldIssues& issues) : path_(std::move(path)), issues_(issues) {}

  Options read(const v1::Sma& kind) {
    Options options = sma::defaults_of(Scheme::kSma);
    options.momentum = checked("central_momentum", kind.central_momentum(), below(0.0F, 1.0F));
    options.period = checked("period", kind.period(), {1, kMaxPulledPeriod});
    if (kind.has_alpha()) options.pull = checked("alpha", kind.alpha(), above(0.0F, 1.0F));
    return options;
  }
  Options read(const v1::EaSgd& kind) {
    Options options = sma::defaults_of(Scheme::kEaSgd);
    options.pull_of_all = checked("beta", kind.beta(), {0.0F, 2.0F, true, true});
    options.period = checked("period", kind.period(), {1, kMaxPulledPeriod});
    return options;
  }
  Options read(const v1::SSgd& kind) {
    Options options = sma::defaults_of(Scheme::kSSgd);
    const double mb = checked("bucket_mb", kind.bucket_mb(), above(0.0, kMaxBucketMb));
    options.bucket_bytes = std::max(std::int64_t{1}, static_cast<std::int64_t>(mb * kMegabyte));
    return options;
  }
  Options read(const v1::LocalSgd& kind) {
    Options options = sma::defaults_of(Scheme::kLocalSgd);
    options.period = checked("period", kind.period(), {1, kMaxPeriod});
    options.local_state = local_state_of(kind.local_state());
    if (kind.has_qsr()) options.rate_coefficient = checked("qsr", kind.qsr(), above(0.0, 1e6));
    return options;
  }
  Options read(const v1::Bmuf& kind) {
    Options options = read_outer(kind, Scheme::kBmuf);
    options.nesterov = kind.nesterov();
    return options;
  }
  Options read(const v1::SlowMo& kind) { return read_outer(kind, Scheme::kSlowMo); }
  Options read(const v1::Diloco& kind) { return read_outer(kind, Scheme::kDiloco); }
  Options read(const v1::Lookahead& kind) { return read_outer(kind, Scheme::kLookahead); }
  Options read(const v1::IndependentLearners& /*kind*/) { return sma::defaults_of(Scheme::kSwap); }
  Options read(const v1::Hogwild& /*kind*/) { return sma::defaults_of(Scheme::kHogwild); }
  Options read(const v1::AsyncSgd& kind) {
    Options options = sma::defaults_of(Scheme::kAsyncSgd);
    if (kind.has_staleness()) options.staleness = checked("staleness", kind.staleness(), {0, kMostStaleness});
    options.period = checked("push_every", kind.push_every(), {1, kMaxPulledPeriod});
    options.scale_by_staleness = kind.scale_by_staleness();
    return options;
  }

 private:
  template <typename T>
  T checked(const char* field, T value, const dataflow::Range<T>& range) {
    issues_.add(path_ + "." + field, out_of_range(field, value, range));
    return value;
  }

  template <typename Kind>
  Options read_outer(const Kind& kind, Scheme scheme) {
    Options options = sma::defaults_of(scheme);
    options.outer_rate = checked("rate", kind.rate(), {0.0F, 100.0F, true, false});
    if (kind.has_momentum()) options.momentum = checked("momentum", kind.momentum(), below(0.0F, 1.0F));
    options.period = checked("period", kind.period(), {1, kMaxPeriod});
    options.local_state = local_state_of(kind.local_state());
    return options;
  }

  std::string path_;
  dataflow::FieldIssues& issues_;
};

template <typename Message>
PlacedScheme read(Message message, const std::string& path, dataflow::FieldIssues& issues) {
  PlacedScheme placed;
  visit_kind(message, [&](const auto& kind, const char* name) {
    placed.path = path + "." + name;
    placed.options = KindReader(placed.path, issues).read(kind);
  });
  return placed;
}

}  // namespace

void fill_scheme(v1::Synchronization& synchronization) {
  if (!visit_kind(synchronization, [](auto& kind, const char*) { fill(kind); })) fill(*synchronization.mutable_sma());
}

void fill_scheme(v1::Switch& message) {
  visit_kind(message, [](auto& kind, const char*) { fill(kind); });
}

PlacedScheme read_scheme(const v1::Synchronization& message, const std::string& path, dataflow::FieldIssues& issues) {
  return read(message, path, issues);
}

PlacedScheme read_scheme(const v1::Switch& message, const std::string& path, dataflow::FieldIssues& issues) {
  return read(message, path, issues);
}

}  // namespace arbalest::jobs
