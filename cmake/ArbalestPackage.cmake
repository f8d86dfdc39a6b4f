# Defines what only packages need. It is included after all programs.
# `cpack --config BUILD/CPackConfig.cmake` makes a Debian package from a build with -DARBALEST_LAYOUT=SYSTEM, and pip makes a
# Python package from pyproject.toml.

if(DEFINED SKBUILD)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/FlattenLinks.cmake COMPONENT program)
endif()
if(NOT ARBALEST_LAYOUT STREQUAL "SYSTEM")
  return()
endif()

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
find_program(GZIP gzip REQUIRED)
set(help_scripts ${PROJECT_SOURCE_DIR}/packaging/help)
set(made ${PROJECT_BINARY_DIR}/packaging)
file(MAKE_DIRECTORY ${made})

# package_file(<name> <command>... ): the command's output, made from the program
function(package_file name)
  add_custom_command(OUTPUT ${made}/${name}
    COMMAND ${ARGN} > ${made}/${name}
    DEPENDS arbalest ${help_scripts}/help_text.py ${help_scripts}/man_page.py ${help_scripts}/completion.py VERBATIM)
endfunction()
set(script ${Python3_EXECUTABLE} -B ${help_scripts}/completion.py)
package_file(arbalest.1 ${Python3_EXECUTABLE} -B ${help_scripts}/man_page.py $<TARGET_FILE:arbalest>)
package_file(arbalest.bash ${script} bash $<TARGET_FILE:arbalest>)
package_file(arbalest.fish ${script} fish $<TARGET_FILE:arbalest>)
package_file(_arbalest ${script} zsh $<TARGET_FILE:arbalest>)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(ARBALEST_MAINTAINER "Arbalest maintainers <maintainers@arbalest.invalid>" CACHE STRING "Maintainer of packages")
configure_file(${PROJECT_SOURCE_DIR}/packaging/debian/changelog.in ${made}/changelog @ONLY)
foreach(name arbalest.1 changelog)
  add_custom_command(OUTPUT ${made}/${name}.gz COMMAND ${GZIP} -9 --no-name --keep --force ${made}/${name}
    DEPENDS ${made}/${name} VERBATIM)
endforeach()
add_custom_target(package_files ALL
  DEPENDS ${made}/arbalest.1.gz ${made}/changelog.gz ${made}/arbalest.bash ${made}/arbalest.fish ${made}/_arbalest)

include(GNUInstallDirs)
install(FILES ${made}/arbalest.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES ${made}/arbalest.bash DESTINATION share/bash-completion/completions RENAME arbalest COMPONENT program)
install(FILES ${made}/arbalest.fish DESTINATION share/fish/vendor_completions.d COMPONENT program)
install(FILES ${made}/_arbalest DESTINATION share/zsh/vendor-completions COMPONENT program)
install(FILES ${made}/changelog.gz ${PROJECT_SOURCE_DIR}/packaging/debian/copyright DESTINATION share/doc/arbalest
  COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME arbalest)
set(CPACK_PACKAGE_CONTACT "${ARBALEST_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "neural networks trained with many small-batch learners per device")
set(CPACK_PACKAGE_DESCRIPTION
"Arbalest trains image classifiers and recommenders with many small-batch
learners per device, each a replica of the model, and keeps them together by
synchronous model averaging. A job is one protobuf text file. The number of
learners is tuned while the job trains.")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4, openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
