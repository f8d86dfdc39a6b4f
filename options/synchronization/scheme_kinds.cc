#include "options/synchronization/scheme_kinds.h"

#include <algorithm>
#include <cstdint>

namespace arbalest::jobs {

using sma::LocalState;
using sma::Options;
using sma::Scheme;

namespace {

constexpr double kMegabyte = 1 << 20;

LocalState local_state_of(v1::Synchronization::LocalState state) {
  if (state == v1::Synchronization::ZERO) return LocalState::kZero;
  return state == v1::Synchronization::AVERAGE ? LocalState::kAverage : LocalState::kKeep;
}

Options read(const v1::Sma& kind) {
  Options options = sma::defaults_of(Scheme::kSma);
  options.momentum = kind.central_momentum();
  options.period = kind.period();
  if (kind.has_alpha()) options.pull = kind.alpha();
  return options;
}

Options read(const v1::EaSgd& kind) {
  Options options = sma::defaults_of(Scheme::kEaSgd);
  options.pull_of_all = kind.beta();
  options.period = kind.period();
  return options;
}

Options read(const v1::SSgd& kind) {
  Options options = sma::defaults_of(Scheme::kSSgd);
  options.bucket_bytes = std::max(std::int64_t{1}, static_cast<std::int64_t>(kind.bucket_mb() * kMegabyte));
  return options;
}

Options read(const v1::LocalSgd& kind) {
  Options options = sma::defaults_of(Scheme::kLocalSgd);
  options.period = kind.period();
  options.local_state = local_state_of(kind.local_state());
  if (kind.has_qsr()) options.rate_coefficient = kind.qsr();
  return options;
}

Options read(const v1::AsyncSgd& kind) {
  Options options = sma::defaults_of(Scheme::kAsyncSgd);
  if (kind.has_staleness()) options.staleness = kind.staleness();
  options.period = kind.push_every();
  options.scale_by_staleness = kind.scale_by_staleness();
  return options;
}

// A scheme that assigns the central model.
template <typename Kind>
Options read_outer(const Kind& kind, Scheme scheme) {
  Options options = sma::defaults_of(scheme);
  options.outer_rate = kind.rate();
  if (kind.has_momentum()) options.momentum = kind.momentum();
  options.period = kind.period();
  options.local_state = local_state_of(kind.local_state());
  return options;
}

Options read(const v1::Bmuf& kind) {
  Options options = read_outer(kind, Scheme::kBmuf);
  options.nesterov = kind.nesterov();
  return options;
}

// Message: Synchronization or Switch, which have the same alternatives.
template <typename Message>
Options read_alternative(const Message& message) {
  switch (message.kind_case()) {
    case Message::kSma: return read(message.sma());
    case Message::kEaSgd: return read(message.ea_sgd());
    case Message::kSSgd: return read(message.s_sgd());
    case Message::kLocalSgd: return read(message.local_sgd());
    case Message::kBmuf: return read(message.bmuf());
    case Message::kSlowMo: return read_outer(message.slow_mo(), Scheme::kSlowMo);
    case Message::kDiloco: return read_outer(message.diloco(), Scheme::kDiloco);
    case Message::kLookahead: return read_outer(message.lookahead(), Scheme::kLookahead);
    case Message::kSwap: return sma::defaults_of(Scheme::kSwap);
    case Message::kHogwild: return sma::defaults_of(Scheme::kHogwild);
    case Message::kAsyncSgd: return read(message.async_sgd());
    default:  // delayed_proximal has no replicas
      return {};
  }
}

template <typename Message>
PlacedScheme read_placed(const Message& message, const std::string& path) {
  const auto* kind =
      message.GetReflection()->GetOneofFieldDescriptor(message, message.GetDescriptor()->FindOneofByName("kind"));
  if (kind == nullptr) return {};
  return {read_alternative(message), path + "." + kind->name()};
}

}  // namespace

PlacedScheme read_scheme(const v1::Synchronization& message, const std::string& path) {
  return read_placed(message, path);
}

PlacedScheme read_scheme(const v1::Switch& message, const std::string& path) { return read_placed(message, path); }

}  // namespace arbalest::jobs
