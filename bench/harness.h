// Measuring: contenders take turns (A B A B ...), so that what disturbs the machine disturbs all of them; a contender's
// number is the median of its turns, its spread tells whether the run can be judged.
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

// Of at least one value; quartiles and median are interpolated.
Summary summarize(std::vector<double> values);

struct Contender {
  std::string name;
  std::function<void()> work;
};

struct Measurement {
  std::string name;
  double seconds = 0.0;          // of one call of work: median over the turns
  double fastest_seconds = 0.0;  // of one call, in the fastest turn: what a shared machine disturbs least
  double spread = 0.0;  // (third quartile - first quartile) / median; judge no ratio whose control is above 0.05
  int turns = 0;
  int calls_per_turn = 0;
};

struct MeasureOptions {
  int turns = 21;
  double seconds_per_turn = 0.02;  // a turn calls the work as often as fits, at least once
  int warm_up_turns = 2;
};

std::vector<Measurement> measure_in_turns(const std::vector<Contender>& contenders, const MeasureOptions& options = {});

// {"processor", "instruction_sets", "usable_cores", "load_average"}; a load average above the threads that the
// benchmark itself runs means that others were computing.
nlohmann::ordered_json describe_machine();

// One object on one line of stdout: the question and the machine first, then `fields`.
void print_result(const std::string& question, const nlohmann::ordered_json& fields);

// The body of main: reads the options, with the callbacks of subcommands, and does `work`, whose result it returns.
// Errors go to stderr, with the exit codes of arbalest (cli/exit_codes.h).
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& work);

nlohmann::ordered_json to_json(const Summary& summary);
nlohmann::ordered_json to_json(const Measurement& measurement);

}  // namespace arbalest::bench
