// Measures a GPU with learners (bench/README.md). One program answers all questions, so that a copied tree contains the
// engine only once.
#include <CLI/CLI.hpp>

#include "bench/gpu/gpu_questions.h"
#include "bench/support/harness.h"

int main(int argc, char** argv) {
  CLI::App app{"Measures learners on a GPU."};
  app.require_subcommand(1);
  arbalest::bench::add_launch(app);
  arbalest::bench::add_learners(app);
  return arbalest::bench::run_program(app, argc, argv, [] { return 0; });
}
