// Measures contenders in turns (A B A B ...), so that disturbances of the machine affect all of them. A contender's
// result is the median of its turns. Its spread tells whether the result is reliable.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace arbalest::bench {

struct Summary {
  double median = 0.0;
  double first_quartile = 0.0;
  double third_quartile = 0.0;

  double spread() const { return (third_quartile - first_quartile) / median; }
};

// `values` must not be empty. Quartiles and median are interpolated.
Summary summarize(std::vector<double> values);

struct Contender {
  std::string name;
  std::function<void()> work;
};

struct Measurement {
  std::string name;
  double seconds = 0.0;          // per call of the work: median over the turns
  double fastest_seconds = 0.0;  // per call, in the fastest turn, which a shared machine disturbs least
  // (third quartile - first quartile) / median. Do not judge a ratio whose control has a spread above 0.05.
  double spread = 0.0;
  int turns = 0;
  int calls_per_turn = 0;
};

struct MeasureOptions {
  int turns = 21;
  double seconds_per_turn = 0.02;  // a turn calls the work as often as fits, at least once
  int warm_up_turns = 2;
};

std::vector<Measurement> measure_in_turns(const std::vector<Contender>& contenders, const MeasureOptions& options = {});

// {"processor", "instruction_sets", "usable_cores", "load_average"}. If the load average exceeds the benchmark's own
// threads, other programs were computing.
nlohmann::ordered_json describe_machine();

// Prints one JSON object on one line of stdout: the question and the machine first, then `fields`.
void print_result(const std::string& question, const nlohmann::ordered_json& fields);

// The body of main. Parses the options, runs the callbacks of subcommands and `work`, and returns the result of `work`.
// Errors go to stderr, with the exit codes of arbalest (cli/exit_codes.h).
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& work);

nlohmann::ordered_json to_json(const Summary& summary);
nlohmann::ordered_json to_json(const Measurement& measurement);

}  // namespace arbalest::bench
