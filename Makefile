# Users need `make demo` and `make test`. The other targets are for developers of Arbalest.
# Finished steps are not repeated: a second `make demo` only trains.

# The CUDA device takes a quarter of a build. It is built where a GPU is, or with CUDA=1, if the toolkit is found.
CUDA    ?= $(wildcard /dev/nvidiactl)
PRESET  ?= release
CORES   := $(shell nproc)
PROGRAM := build/release/arbalest
# Our sources, for the formatter and the linter.
SOURCES := $(shell find api autotuner bench checkpoint cli dataflow engine fetch interchange learners messages options \
             predict report saved_model scheduler sma study tests train -name '*.h' -o -name '*.cc' -o -name '*.cuh' -o -name '*.cu')

.PHONY: demo test build asan tsan sanitize faults fuzz packages format format-check tidy clean bootstrap

demo: build/release/build.ninja
	@cmake --build --preset release --target arbalest
	$(PROGRAM) train configs/lenet-digits.txtpb

# Builds everything and runs every test. Tests that cannot run here (such as without a dataset) are listed as skipped.
# More tests run at once than there are cores, because some wait more than they compute. The preset lets a thread that
# waits for others spin for microseconds only, because other tests want its core.
test: build
	@ctest --preset $(PRESET) --output-junit $(CURDIR)/build/$(PRESET)/tests.xml \
	  --parallel $$(( $(CORES) + 1 )) || { scripts/failed_tests.py build/$(PRESET)/tests.xml; exit 1; }
	@echo "make test: every test that can run here has passed ($(PRESET))"

build: build/$(PRESET)/build.ninja
	@cmake --build --preset $(PRESET)

# Ninja repeats the configuration by itself when a CMake file changes; another choice of CUDA repeats it here.
CHOICE := cuda-$(if $(filter-out 0,$(CUDA)),AUTO,OFF)
build/%/build.ninja: build/%/$(CHOICE) | bootstrap
	@echo "configuring build/$*"
	@cmake --preset $* $(if $(filter release debug,$*),-DARBALEST_CUDA=$(CHOICE:cuda-%=%)) \
	  >build/$*-configure.log 2>&1 || { cat build/$*-configure.log; exit 1; }
	@touch $@

build/%/$(CHOICE):
	@mkdir -p build/$*
	@rm -f build/$*/cuda-AUTO build/$*/cuda-OFF
	@touch $@
.PRECIOUS: build/%/$(CHOICE)

bootstrap:
	@scripts/bootstrap.sh

asan tsan:
	@$(MAKE) --no-print-directory test PRESET=$@

# Runs the programs labelled `sanitized` with AddressSanitizer and UndefinedBehaviorSanitizer, then ThreadSanitizer.
sanitize:
	@$(MAKE) --no-print-directory test PRESET=asan-ci
	@$(MAKE) --no-print-directory test PRESET=tsan-ci

# Disturbs small runs and checkpoints: kills, signals, failing system calls, losses of power, damage. Prints a line for each
# row of the scorecard. FAULTS: arguments of the script, such as --rows R1,R4.
FAULTS ?=
faults: build
	@scripts/bootstrap.sh strace
	@tests/faults/scorecard.py --build build/$(PRESET) $(FAULTS)

# Feeds hostile input to the readers of files: FUZZ_RUNS executions of each target in tests/fuzz.
FUZZ_RUNS ?= default
fuzz:
	@scripts/bootstrap.sh libclang-rt-14-dev
	@$(MAKE) --no-print-directory build PRESET=fuzz
	@tests/fuzz/run.sh build/fuzz $(FUZZ_RUNS)

# Builds the wheel and the Debian package, installs each beside nothing else, and uses it.
packages:
	@scripts/bootstrap.sh dpkg-dev lintian groff-base python3-pip python3-venv
	@mkdir -p build
	@packaging/build.sh build/packages
	@python3 -B tests/packages/wheel_test.py build/packages/*.whl
	@python3 -B tests/packages/debian_test.py build/packages/*.deb

format:
	@scripts/bootstrap.sh clang-format
	clang-format -i $(SOURCES)

# Lists the changes that `make format` would make, and fails if there are any.
format-check:
	@scripts/bootstrap.sh clang-format
	@clang-format --dry-run -Werror $(SOURCES)

# Reads the commands of the preset debug, which compiles each file by itself.
tidy:
	@$(MAKE) --no-print-directory build PRESET=debug
	@scripts/bootstrap.sh clang-tidy
	@printf '%s\n' $(filter %.cc,$(SOURCES)) | xargs --max-procs=$(CORES) --max-args=4 clang-tidy --quiet -p build/debug

clean:
	rm -rf build
