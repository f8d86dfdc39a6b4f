# A Python package holds no symbolic links: each would become a second copy. Gives the library behind each link in lib/ the
# link's name, which is the one that programs ask for. Runs at installation.
file(GLOB links ${CMAKE_INSTALL_PREFIX}/lib/*)
foreach(link IN LISTS links)
  if(IS_SYMLINK ${link})
    file(REAL_PATH ${link} library)
    file(REMOVE ${link})
    file(RENAME ${library} ${link})
  endif()
endforeach()
