// The test programs' main. Catch2's own main exits with the number of failed assertions, and 4 of them would look like
// a skipped test (tests/support/skip.h).
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv) == 0 ? 0 : 1; }
