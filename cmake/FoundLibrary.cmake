# The common part of our find modules after the search for header and library.
include(FindPackageHandleStandardArgs)

# arbalest_found_library(<name> <target> <version header> <version macros>)
# Sets <name>_FOUND and <name>_VERSION from <name>_INCLUDE_DIR and <name>_LIBRARY, and creates <target> if found. The
# version macros (a regular expression) must be in the header in the order major, minor, patch.
macro(arbalest_found_library name target version_header version_macros)
  if(${name}_INCLUDE_DIR)
    file(STRINGS ${${name}_INCLUDE_DIR}/${version_header} version_lines REGEX "define ${version_macros}")
    string(REGEX REPLACE "[^0-9]+([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" ${name}_VERSION
           "${version_lines}")
  endif()
  find_package_handle_standard_args(${name}
    REQUIRED_VARS ${name}_LIBRARY ${name}_INCLUDE_DIR VERSION_VAR ${name}_VERSION HANDLE_VERSION_RANGE)
  if(${name}_FOUND AND NOT TARGET ${target})
    add_library(${target} UNKNOWN IMPORTED)
    set_target_properties(${target} PROPERTIES
      IMPORTED_LOCATION ${${name}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE_DIR})
  endif()
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
endmacro()
