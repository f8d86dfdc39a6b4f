# The two commands of the README are `make demo` and `make test`; the rest is for those who work on Arbalest.
# What is done is not done again: a second `make demo` only trains.

PRESET  ?= release
CORES   := $(shell nproc)
PROGRAM := build/release/arbalest
# Sources of ours, for the formatter and the linter.
SOURCES := $(shell find autotuner bench cli dataflow engine jobs learners scheduler sma tests \
             -name '*.h' -o -name '*.cc' -o -name '*.cuh' -o -name '*.cu')

.PHONY: demo test build asan tsan format format-check tidy clean bootstrap

demo: build/release/build.ninja
	@cmake --build --preset release --target arbalest
	$(PROGRAM) train configs/lenet-digits.txtpb

# Everything is built, then every test runs. What cannot run here (a dataset is absent) is listed as skipped.
test: build
	@ctest --preset $(PRESET) --parallel $(CORES)
	@echo "make test: every test that can run here has passed ($(PRESET))"

build: build/$(PRESET)/build.ninja
	@cmake --build --preset $(PRESET)

# Ninja configures again by itself when a CMake file changes.
build/%/build.ninja: | bootstrap
	@echo "configuring build/$*"
	@mkdir -p build
	@cmake --preset $* >build/$*-configure.log 2>&1 || { cat build/$*-configure.log; exit 1; }

bootstrap:
	@scripts/bootstrap.sh

asan tsan:
	@$(MAKE) --no-print-directory test PRESET=$@

format:
	@scripts/bootstrap.sh clang-format
	clang-format -i $(SOURCES)

# Names what `make format` would change, and fails if there is any.
format-check:
	@scripts/bootstrap.sh clang-format
	@clang-format --dry-run -Werror $(SOURCES)

tidy: build
	@scripts/bootstrap.sh clang-tidy
	@printf '%s\n' $(filter %.cc,$(SOURCES)) | xargs --max-procs=$(CORES) --max-args=4 clang-tidy --quiet -p build/$(PRESET)

clean:
	rm -rf build
