# What `cmake --install` puts where, and packages: by cpack a .tar.gz that brings the libraries of the system that
# programs are linked with, and a .deb that depends on them; the wheel, which brings them too (cmake/wheel). All have every
# reader. None brings libtorch, which programs look for when they need it (core/torch_folder.h). Components: `programs`,
# `launcher` and `data`, which are installed unless one is named, `bundled`, those libraries, and `engine`, the
# compiled part of the Python package. Packages for other machines are built with the preset `package` (launch/package.sh).
set(SATRAP_INSTALL_LAUNCH "${CMAKE_INSTALL_DATADIR}/satrap/launch")

option(SATRAP_ALL_READERS "A build without one of the readers, or without what packages need, is an error" OFF)
set(_without "")
if(NOT SATRAP_HAVE_ARROW)
  list(APPEND _without "Parquet and Arrow (pyarrow ${SATRAP_ARROW_VERSION}: ./launch/setup.sh parquet)")
endif()
if(NOT SATRAP_HAVE_S3)
  list(APPEND _without "S3 (libcurl ${SATRAP_CURL_VERSION} or newer and pyarrow ${SATRAP_ARROW_VERSION}: ./launch/setup.sh s3)")
endif()
if(NOT SATRAP_HAVE_HDFS)
  list(APPEND _without "HDFS (libcurl ${SATRAP_CURL_VERSION} or newer: ./launch/setup.sh hdfs)")
endif()
if(NOT SATRAP_HAVE_KAFKA)
  list(APPEND _without "Kafka (librdkafka ${SATRAP_RDKAFKA_VERSION} or newer: ./launch/setup.sh kafka)")
endif()
if(NOT SATRAP_HAVE_ONNX)
  list(APPEND _without "ONNX (protobuf ${SATRAP_PROTOBUF_VERSION} or newer: ./launch/setup.sh run)")
endif()
if(NOT SATRAP_HAVE_PYTHON)
  list(APPEND _without "networks in Python (nanobind ${SATRAP_NANOBIND_VERSION}: ./launch/setup.sh python)")
endif()
if(SATRAP_HAVE_ARROW AND NOT SATRAP_PATCHELF)
  list(APPEND _without "names of its own for Arrow's libraries (patchelf: ./launch/setup.sh package)")
endif()
list(JOIN _without ", " _without)
set(_refusal "A package has every reader, and this build is without: ${_without}. \
./launch/setup.sh package installs all that packages need; then configure again.")
if(_without AND SATRAP_ALL_READERS)
  message(FATAL_ERROR "${_refusal}")
endif()

install(TARGETS satrap satrap-ps RUNTIME_DEPENDENCY_SET satrap_bundled
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
install(TARGETS satrap_libtorch LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
if(SATRAP_HAVE_CUDA)
  install(TARGETS satrap_libtorch_cuda LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
  install(FILES "${TORCH_NVIDIA_DIR}/cu13/lib/libcudart.so.13" DESTINATION "${SATRAP_INSTALL_LIBDIR}"
    COMPONENT programs)
endif()

if(SATRAP_HAVE_ARROW)
  install(TARGETS satrap_arrow LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
  set(_arrow_libraries arrow parquet)
  if(SATRAP_HAVE_S3)
    install(TARGETS satrap_s3 RUNTIME_DEPENDENCY_SET satrap_bundled
      LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
    list(APPEND _arrow_libraries arrow_s3)
  endif()
  foreach(_name ${_arrow_libraries})
    get_target_property(_library Arrow::${_name} IMPORTED_LOCATION)
    install(FILES "${_library}" DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
  endforeach()
  file(GLOB _license "${_arrow_dir}/../pyarrow-*.dist-info/licenses/LICENSE.txt")
  install(FILES ${_license} RENAME arrow.txt DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap/licenses" COMPONENT programs)
endif()

if(SATRAP_HAVE_KAFKA)
  install(TARGETS satrap_kafka RUNTIME_DEPENDENCY_SET satrap_bundled
    LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
endif()
if(SATRAP_HAVE_ONNX)
  install(TARGETS satrap_onnx RUNTIME_DEPENDENCY_SET satrap_bundled
    LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
endif()
if(SATRAP_HAVE_HDFS)
  install(TARGETS satrap_hdfs RUNTIME_DEPENDENCY_SET satrap_bundled
    LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
endif()

if(SATRAP_HAVE_PYTHON)  # for the wheel alone, whose folder of the package is the prefix
  set_target_properties(_engine PROPERTIES INSTALL_RPATH "$ORIGIN/${SATRAP_INSTALL_LIBDIR}")
  install(TARGETS _engine LIBRARY DESTINATION . COMPONENT engine EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_BINARY_DIR}/python/satrap/_engine.pyi" DESTINATION . COMPONENT engine EXCLUDE_FROM_ALL)
endif()

# The launcher finds its package beside itself, where bin/satrap-run leads.
install(PROGRAMS launch/satrap-run DESTINATION "${SATRAP_INSTALL_LAUNCH}" COMPONENT launcher)
install(DIRECTORY launch/satrap_run launch/slurm DESTINATION "${SATRAP_INSTALL_LAUNCH}" COMPONENT launcher
  PATTERN __pycache__ EXCLUDE)
file(RELATIVE_PATH _launcher "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_DATADIR}/satrap/launch/satrap-run")
install(CODE "file(CREATE_LINK \"${_launcher}\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/satrap-run\" SYMBOLIC)" COMPONENT launcher)

install(FILES README.md LICENSE SECURITY.md DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap" COMPONENT data)
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap" COMPONENT data FILES_MATCHING PATTERN "*.md"
  PATTERN dev EXCLUDE)
install(DIRECTORY datasets DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap" COMPONENT data)

# The C library and the compiler's stay the system's: libtorch uses them too. Arrow's are installed above.
install(RUNTIME_DEPENDENCY_SET satrap_bundled
  PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\\+\\+|cudart)\\.so" "^ld-linux" "^lib(arrow|parquet)"
  LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT bundled EXCLUDE_FROM_ALL)
install(CODE "set(_libraries \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${SATRAP_INSTALL_LIBDIR}\")
  set(_licences \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/satrap/licenses\")
  set(SATRAP_PATCHELF \"${SATRAP_PATCHELF}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_bundled.cmake\")" COMPONENT bundled EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_VENDOR "The satrap authors")
set(CPACK_PACKAGE_CONTACT "The satrap authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trainer of recommender models with large embedding tables")
set(CPACK_PACKAGE_FILE_NAME "satrap-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${_torch_dir}/lib")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "python3 (>= 3.11)")  # satrap-run
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS tzdata)  # zones of times
# Read for each generator. It adds `bundled` to what the archive installs, and refuses a build that is not a package's.
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_BINARY_DIR}/CPackBundled.cmake")
if(_without)
  set(_refuse "message(FATAL_ERROR \"${_refusal}\")\n")
else()
  set(_refuse "")
endif()
file(WRITE "${CPACK_PROJECT_CONFIG_FILE}" "${_refuse}if(CPACK_GENERATOR STREQUAL \"TGZ\")
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS \"${PROJECT_BINARY_DIR}\" satrap bundled /)
endif()\n")
include(CPack)
