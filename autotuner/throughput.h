// Turns completed tasks and seconds into windows, and windows into a throughput and its error.
//
// The median of m windows that are normally distributed with relative deviation s has a standard error of about s
// sqrt(pi / (2 m)). It needs about 1.5 times as many windows as the mean, and ignores stragglers. The deviation is
// estimated by 1.4826 times the median of |window / median - 1|, without the window that is the median (Rousseeuw and
// Croux, "Alternatives to the median absolute deviation", JASA 1993; leaving one out corrects for few windows,
// tests/autotuner measures it).
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace arbalest::autotuner {

struct WindowOptions {
  double seconds = 0.05;  // least duration of a window
  int rounds = 4;         // least number of tasks per learner in a window
  int settling = 2;       // windows ignored after a change of the count
};

// Processor seconds of the process while windows were measured, as engine/host/processor_time.h defines them. The
// caller measures them; here they are data.
struct ProcessorUse {
  double seconds = 0.0;  // duration of what was measured; 0: nothing is known
  double used = 0.0;
  double lost = 0.0;  // to other programs

  void add(const ProcessorUse& more) {
    seconds += more.seconds;
    used += more.used;
    lost += more.lost;
  }
  bool is_known() const { return seconds > 0.0 && used > 0.0; }
  // The part of what the process wanted that it did not get.
  double lost_share() const { return used + lost > 0.0 ? lost / (used + lost) : 0.0; }
};

struct Window {
  double rate = 0.0;  // examples per second
  ProcessorUse processor{};

  // Examples per processor second; none if the processor time is not known.
  std::optional<double> per_processor_second() const {
    return processor.is_known() ? std::optional(rate * processor.seconds / processor.used) : std::nullopt;
  }
};

// Divides completed work into windows.
class WindowMeter {
 public:
  explicit WindowMeter(const WindowOptions& options) : options_(options), settling_(options.settling) {}

  // `learners` (over all devices) train from now on: drops the open window and starts to settle.
  void restart(int learners);
  // Whether add() with the same numbers will complete a window, for which the processor time should be read.
  bool completes(std::int64_t tasks, std::int64_t examples, double seconds) const;
  // `tasks` with `examples` have ended in the last `seconds`. `processor`: since its last reading, or nothing. Returns
  // the window if this completes a window after settling.
  std::optional<Window> add(std::int64_t tasks, std::int64_t examples, double seconds,
                            const ProcessorUse& processor = {});

 private:
  WindowOptions options_;
  int learners_ = 1;
  int settling_;
  std::int64_t tasks_ = 0;
  std::int64_t examples_ = 0;
  double seconds_ = 0.0;
  ProcessorUse processor_;
};

// The median; of an even number of values the lower middle one. `values` must not be empty.
double median(std::vector<double> values);

// Relative standard error of the median of `windows` windows whose relative deviation is `noise`.
double median_error(double noise, int windows);

// Standard error of the sum or difference of two numbers with independent errors. (std::hypot would need glibc 2.35.)
inline double combined_error(double a, double b) { return std::sqrt(a * a + b * b); }

// The relative deviation of single windows, from all measurements; differences between counts are removed.
class NoiseEstimate {
 public:
  void add(std::span<const double> rates);
  // The deviation including `rates`, which are not added. At least 0.3 %: no clock and no scheduler is more exact.
  double with(std::span<const double> rates) const;

 private:
  std::vector<double> residuals_;
};

}  // namespace arbalest::autotuner
