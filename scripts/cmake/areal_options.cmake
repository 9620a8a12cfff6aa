# Flags that every target shares, and areal_library(), which makes a layer's library from all its .cpp files.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(AREAL_OPTIMISE "-O2" CACHE STRING "optimisation of RelWithDebInfo; sanitizers compile faster with -O1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "${AREAL_OPTIMISE} -g1")  # no NDEBUG: checks stay on

set(AREAL_SANITIZE "" CACHE STRING "address;undefined, or thread")
option(AREAL_FUZZ "build the fuzzer, with clang; AREAL_SANITIZE then names fuzzer-no-link too" OFF)
set(AREAL_AUTO_INIT "" CACHE STRING "pattern or zero: fill automatic variables, to show reads of unset memory")

find_program(AREAL_CCACHE ccache)
if(AREAL_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${AREAL_CCACHE})
endif()

add_library(areal_flags INTERFACE)
target_include_directories(areal_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(areal_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Wdate-time;-Werror>"
  "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;-fno-fast-math;-fno-omit-frame-pointer>"
  "$<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>")
# clang-19 warns of libstdc++ 12's own use of get_temporary_buffer inside std::stable_sort; g++ 12 warns falsely of
# overlapping copies inside std::string (GCC bug 105651).
target_compile_options(areal_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(AREAL_SANITIZE)
  string(REPLACE ";" "," areal_sanitizers "${AREAL_SANITIZE}")
  target_compile_options(areal_flags INTERFACE -fsanitize=${areal_sanitizers} -fno-sanitize-recover=all)
  target_link_options(areal_flags INTERFACE -fsanitize=${areal_sanitizers})
endif()
if(AREAL_AUTO_INIT)
  target_compile_options(areal_flags INTERFACE -ftrivial-auto-var-init=${AREAL_AUTO_INIT})
endif()

# A library of all .cpp files of the current folder. EXCEPTIONS: the code below it may throw (readers of YAML, the
# command line, SQLite); everything else of the core is built without. DEPENDS: the layers it may include.
function(areal_library name)
  cmake_parse_arguments(ARG "EXCEPTIONS" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(${name} STATIC ${sources})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PUBLIC areal_flags ${ARG_DEPENDS})
  if(NOT ARG_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fno-exceptions)
  endif()
endfunction()
