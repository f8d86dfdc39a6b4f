// What a GPU does with learners (bench/README.md): one program, so that a carried tree holds the engine once.
#include <CLI/CLI.hpp>

#include "bench/gpu_questions.h"
#include "bench/harness.h"

int main(int argc, char** argv) {
  CLI::App app{"Measures learners on a GPU."};
  app.require_subcommand(1);
  arbalest::bench::add_launch(app);
  arbalest::bench::add_learners(app);
  return arbalest::bench::run_program(app, argc, argv, [] { return 0; });
}
