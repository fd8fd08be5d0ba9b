# What `cmake --install` puts where, and packages by cpack: a .tar.gz that brings the libraries of the system that
# programs are linked with, and a .deb that depends on them. None brings libtorch, which programs look for when they
# need it (core/torch_folder.h). Components: `programs`, `launcher` and `data`, which are installed unless one is named,
# and `bundled`, those libraries. Packages for other machines are built with the preset `package`.
set(SATRAP_INSTALL_LAUNCH "${CMAKE_INSTALL_DATADIR}/satrap/launch")

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
    install(TARGETS satrap_s3 LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
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
  install(TARGETS satrap_kafka LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
endif()
if(SATRAP_HAVE_HDFS)
  install(TARGETS satrap_hdfs LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT programs)
endif()

# The launcher finds its package beside itself, where bin/satrap-run leads.
install(PROGRAMS launch/satrap-run DESTINATION "${SATRAP_INSTALL_LAUNCH}" COMPONENT launcher)
install(DIRECTORY launch/satrap_run launch/slurm DESTINATION "${SATRAP_INSTALL_LAUNCH}" COMPONENT launcher
  PATTERN __pycache__ EXCLUDE)
file(RELATIVE_PATH _launcher "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_DATADIR}/satrap/launch/satrap-run")
install(CODE "file(CREATE_LINK \"${_launcher}\"
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/satrap-run\" SYMBOLIC)" COMPONENT launcher)

install(FILES README.md LICENSE SECURITY.md DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap" COMPONENT data)
install(DIRECTORY datasets DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap" COMPONENT data)

# The C library and the compiler's stay the system's: libtorch uses them too.
install(RUNTIME_DEPENDENCY_SET satrap_bundled
  PRE_EXCLUDE_REGEXES "^lib(c|m|gcc_s|stdc\\+\\+|cudart)\\.so" "^ld-linux"
  LIBRARY DESTINATION "${SATRAP_INSTALL_LIBDIR}" COMPONENT bundled EXCLUDE_FROM_ALL)
# Debian's notices of their licences; another system's are elsewhere.
foreach(_package libfmt libgloo libsimdjson libspdlog libssl libxxhash libyaml-cpp libzstd zlib1g libhiredis libibverbs
        libnl-3)
  install(FILES "/usr/share/doc/${_package}-dev/copyright" RENAME "${_package}.txt" OPTIONAL
    DESTINATION "${CMAKE_INSTALL_DATADIR}/satrap/licenses" COMPONENT bundled EXCLUDE_FROM_ALL)
endforeach()

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
# Read for each generator. It adds `bundled` to what the archive installs.
set(CPACK_PROJECT_CONFIG_FILE "${PROJECT_BINARY_DIR}/CPackBundled.cmake")
file(WRITE "${CPACK_PROJECT_CONFIG_FILE}" "if(CPACK_GENERATOR STREQUAL \"TGZ\")
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS \"${PROJECT_BINARY_DIR}\" satrap bundled /)
endif()\n")
include(CPack)
