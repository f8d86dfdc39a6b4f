# What every target of ours is compiled with, and how a folder becomes one.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# -O2 compiles faster; the folder whose loops matter (engine) asks for more.
# Functions that a program does not call are left out of it: an installed tree is carried to other machines.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_RELEASE "-Wl,--gc-sections")

find_program(ARBALEST_CCACHE ccache)
if(ARBALEST_CCACHE)
  # Paths relative to the tree, so that clones share what is compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${ARBALEST_CCACHE})
endif()

add_library(arbalest_flags INTERFACE)
target_include_directories(arbalest_flags INTERFACE ${PROJECT_SOURCE_DIR})
# x86-64-v3 is the portable baseline (oneDNN dispatches further at run time). Contraction is off so that host and
# device compute the same bits. ptxas refuses kernels that spill registers or index arrays of theirs in local memory.
target_compile_options(arbalest_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3;-ffp-contract=off;-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Werror>"
  "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;--expt-relaxed-constexpr;-Xfatbin=-compress-all;-Werror=all-warnings;-Xptxas=--warn-on-spills,--warn-on-local-memory-usage;-Xcompiler=-march=x86-64-v3,-ffp-contract=off,-Wall,-Wextra,-Wshadow>"
  # nvcc: 1675 is a pragma of GCC's; {fmt} 9 mixes up its own constexpr and consteval there.
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
  # What a sanitizer inserts hides from GCC that a value is set: false alarms inside <regex> (GCC bug 105616).
  target_compile_options(arbalest_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()

# arbalest_folder(<folder> SOURCES <files>... [DEPENDS <targets>...] [PRIVATE_DEPENDS <targets>...])
# Makes the static library arbalest_<folder>, known as arbalest::<folder>.
function(arbalest_folder folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(arbalest_${folder} STATIC ${ARG_SOURCES})
  add_library(arbalest::${folder} ALIAS arbalest_${folder})
  target_link_libraries(arbalest_${folder}
    PUBLIC arbalest_flags fmt::fmt ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
endfunction()

# arbalest_test(<name> LABEL <label> SOURCES <files>... DEPENDS <targets>...)
# One Catch2 program; ctest knows each of its cases as <name>/<case>. One label per program.
function(arbalest_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(ARBALEST_SANITIZE)
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE arbalest_test_support ${ARG_DEPENDS})
  if(Catch2_VERSION VERSION_LESS 3)
    set(fail_if_no_test EXTRA_ARGS --warn NoTests)  # from 3 on the default
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}/" ${fail_if_no_test}
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT} SKIP_RETURN_CODE 4)
endfunction()
