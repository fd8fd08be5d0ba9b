# CURL::libcurl, by which objects of S3 and files in HDFS are read: an optional part. Results: SATRAP_HAVE_HDFS, and
# SATRAP_HAVE_S3, which needs Arrow's client (ArrowWheel.cmake) too. Without them satrap is built without these parts,
# and says so to who needs them.
set(SATRAP_CURL_VERSION 7.88)
set(SATRAP_HAVE_HDFS OFF)
set(SATRAP_HAVE_S3 OFF)
find_package(CURL ${SATRAP_CURL_VERSION} QUIET)
if(NOT CURL_FOUND)
  message(STATUS "S3 and HDFS: off (libcurl ${SATRAP_CURL_VERSION} or newer not found; ./launch/setup.sh s3 or hdfs "
    "installs it)")
  return()
endif()
set(SATRAP_HAVE_HDFS ON)
message(STATUS "HDFS: libcurl ${CURL_VERSION_STRING}")
if(SATRAP_HAVE_ARROW)
  set(SATRAP_HAVE_S3 ON)
  message(STATUS "S3: libcurl ${CURL_VERSION_STRING} and Arrow ${SATRAP_ARROW_VERSION}")
else()
  message(STATUS "S3: off (needs pyarrow ${SATRAP_ARROW_VERSION}; ./launch/setup.sh s3 installs it)")
endif()
