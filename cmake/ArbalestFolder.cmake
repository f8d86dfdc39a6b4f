# Compiler options of all our targets, and functions that make targets of folders and tests.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# -O2 compiles faster than -O3. The folder whose loops matter (engine) uses -O3.
# Functions that a program does not call are left out, so that an installed tree is smaller to copy.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_RELEASE "-Wl,--gc-sections")

find_program(ARBALEST_CCACHE ccache)
if(ARBALEST_CCACHE)
  # Paths are relative to the tree, so that clones share the cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${ARBALEST_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

add_library(arbalest_flags INTERFACE)
target_include_directories(arbalest_flags INTERFACE ${PROJECT_SOURCE_DIR})
# x86-64-v3 is the portable baseline (oneDNN dispatches to newer instructions at run time). Contraction is off so that
# host and device compute the same bits. ptxas rejects kernels that spill registers or use arrays in local memory.
target_compile_options(arbalest_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3;-ffp-contract=off;-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Werror>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-Xfatbin=-compress-all;-Werror=all-warnings;-Xptxas=--warn-on-spills,--warn-on-local-memory-usage;-Xcompiler=-march=x86-64-v3,-ffp-contract=off,-Wall,-Wextra,-Wshadow>"
  # For nvcc: warning 1675 is about a GCC pragma, and {fmt} 9 confuses its own constexpr and consteval.
  "$<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=1675;-DFMT_USE_CONSTEXPR=1;-DFMT_CONSTEVAL=>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(arbalest_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)  # false alarms on std::string (GCC bug 105329)
endif()
if(ARBALEST_SANITIZE STREQUAL "address")
  target_compile_options(arbalest_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(arbalest_flags INTERFACE -fsanitize=address,undefined)
elseif(ARBALEST_SANITIZE STREQUAL "thread")
  target_compile_options(arbalest_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread;-fno-omit-frame-pointer>")
  target_link_options(arbalest_flags INTERFACE -fsanitize=thread)
elseif(ARBALEST_SANITIZE)
  message(FATAL_ERROR "ARBALEST_SANITIZE is '${ARBALEST_SANITIZE}'; use 'address' or 'thread'")
endif()
if(ARBALEST_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With a sanitizer's code, GCC does not see that a value is set: false alarms inside <regex> (GCC bug 105616).
  target_compile_options(arbalest_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()

# arbalest_in_shared_library(<static library>)
# Compiles it so that both the program and libarbalest.so can hold its objects. Its symbols are hidden: calls within the
# shared library then cost what they cost in the program.
function(arbalest_in_shared_library library)
  set_target_properties(${library} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# arbalest_folder(<folder> SOURCES <files>... [DEPENDS <targets>...] [PRIVATE_DEPENDS <targets>...])
# Makes the static library arbalest_<folder> with the alias arbalest::<folder>.
function(arbalest_folder folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(arbalest_${folder} STATIC ${ARG_SOURCES})
  add_library(arbalest::${folder} ALIAS arbalest_${folder})
  target_link_libraries(arbalest_${folder}
    PUBLIC arbalest_flags fmt::fmt ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  arbalest_in_shared_library(arbalest_${folder})
endfunction()

# arbalest_test(<name> LABEL <label> [SANITIZERS address|thread...] SOURCES <files>... DEPENDS <targets>...)
# Makes a Catch2 program. Each of its test cases is a ctest test named <name>/<case>. A program has one label. Builds
# with one of its SANITIZERS label it `sanitized`: CI runs these programs (make sanitize).
function(arbalest_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SANITIZERS;SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ARBALEST_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  if(ARBALEST_SANITIZE IN_LIST ARG_SANITIZERS)
    set(ARG_LABEL sanitized)
    add_dependencies(sanitized_tests ${name})
  endif()
  target_link_libraries(${name} PRIVATE arbalest_test_support ${ARG_DEPENDS})
  if(Catch2_VERSION VERSION_LESS 3)
    set(fail_if_no_test EXTRA_ARGS --warn NoTests)  # the default since version 3
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}/" ${fail_if_no_test}
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 4)
endfunction()
