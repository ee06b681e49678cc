# SPDX-License-Identifier: MIT
#[[
kpack_target_archives(TARGET [GROUP name] [DESTINATION dir])

After TARGET, a library or program with HIP code, is linked, its device code moves into archives in
.kpack beside it: the file and the archives are what `kpack pack --group name` makes of the linked
file.  GROUP names the archives (TARGET); targets of one GROUP in one directory share them.  The code
of a static library moves where the library is linked.  With DESTINATION the archives are installed to
DESTINATION/.kpack; it is the directory that TARGET itself is installed to, such as lib.

    include(path/to/contrib/cmake/kpackTargets.cmake)
    add_library(demo SHARED demo.hip)
    kpack_target_archives(demo DESTINATION lib)
    install(TARGETS demo DESTINATION lib)

The variable KPACK_PROGRAM names the program kpack.  To link with librocm_kpack,
find_package(rocm-kpack) is enough.
]]
set(_kpack_link "${CMAKE_CURRENT_LIST_DIR}/kpack-link")

function(kpack_target_archives target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "GROUP;DESTINATION" "")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "kpack_target_archives(${target}): ${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}: not GROUP name or DESTINATION dir")
  endif()
  find_program(KPACK_PROGRAM kpack)
  if(NOT KPACK_PROGRAM)
    message(FATAL_ERROR "kpack_target_archives(${target}): no program kpack; KPACK_PROGRAM names it")
  endif()
  if(NOT arg_GROUP)
    set(arg_GROUP ${target})
  endif()
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -E env "KPACK=${KPACK_PROGRAM}" "${_kpack_link}" -g "${arg_GROUP}" -f "$<TARGET_FILE:${target}>"
    COMMENT "Moving the device code of ${target} into archives")
  if(arg_DESTINATION)
    install(DIRECTORY "$<TARGET_FILE_DIR:${target}>/.kpack/" DESTINATION "${arg_DESTINATION}/.kpack"
      FILES_MATCHING PATTERN "${arg_GROUP}_*.kpack")
  endif()
endfunction()
