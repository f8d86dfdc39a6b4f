# Decides whether the MPI module is built, which jobs of several processes need. AUTO: if MPI is found. ON: always, with
# an error if it is missing. OFF: never. CMake's hints choose among several MPI libraries: -DMPI_CXX_COMPILER=mpicxx.mpich.
set(ARBALEST_MPI AUTO CACHE STRING "Build the MPI module: AUTO, ON or OFF")
set_property(CACHE ARBALEST_MPI PROPERTY STRINGS AUTO ON OFF)
set(ARBALEST_HAS_MPI FALSE)

if(ARBALEST_MPI)  # AUTO counts as true
  set(MPI_CXX_SKIP_MPICXX TRUE)  # MPI's removed C++ interface
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(ARBALEST_HAS_MPI TRUE)
    message(STATUS "Several processes: MPI ${MPI_CXX_VERSION}, launched by ${MPIEXEC_EXECUTABLE}")
  elseif(ARBALEST_MPI STREQUAL "AUTO")
    message(STATUS "Several processes: not built (needs MPI, such as libopenmpi-dev and openmpi-bin)")
  else()
    message(FATAL_ERROR "ARBALEST_MPI is ON, but there is no MPI; hints: MPI_HOME, MPI_CXX_COMPILER")
  endif()
else()
  message(STATUS "Several processes: not built (ARBALEST_MPI is OFF)")
endif()
