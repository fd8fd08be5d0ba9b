# protobuf::libprotobuf-lite and protoc, by which networks are written as ONNX: an optional part. Result:
# SATRAP_HAVE_ONNX. Without them satrap is built without the part, and says so to who needs it.
set(SATRAP_PROTOBUF_VERSION 3.21)
set(SATRAP_HAVE_ONNX OFF)
find_package(Protobuf ${SATRAP_PROTOBUF_VERSION} QUIET MODULE)
if(NOT TARGET protobuf::libprotobuf-lite OR NOT TARGET protobuf::protoc)
  message(STATUS "ONNX: off (protobuf ${SATRAP_PROTOBUF_VERSION} or newer and protoc not found; ./launch/setup.sh run "
    "installs them)")
  return()
endif()
set(SATRAP_HAVE_ONNX ON)
message(STATUS "ONNX: protobuf ${Protobuf_VERSION}")

# satrap_protobuf_messages(<target> <file>.proto): the target gets the messages of the file, and includes <file>.pb.h.
# They are made here: clang-tidy reads what is configured and not built.
function(satrap_protobuf_messages target file)
  cmake_path(GET file STEM stem)
  cmake_path(GET file PARENT_PATH folder)
  set(out "${PROJECT_BINARY_DIR}/protobuf")
  file(MAKE_DIRECTORY "${out}")
  execute_process(COMMAND "${Protobuf_PROTOC_EXECUTABLE}" "--proto_path=${PROJECT_SOURCE_DIR}/${folder}"
    "--cpp_out=${out}" "${PROJECT_SOURCE_DIR}/${file}" COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  set_source_files_properties("${out}/${stem}.pb.cc" PROPERTIES COMPILE_OPTIONS -w SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE "${out}/${stem}.pb.cc")
  target_include_directories(${target} SYSTEM PRIVATE "${out}")
endfunction()
