#pragma once
// formats: readers and writers of files, with no tensor library. Every file is taken as hostile.
//   read_json, dump_python                  JSON text as Python's json module writes it
//   SafetensorsFile, SafetensorsWriter      one file of named tensors
//   MappedFile, AtomicFile, replace_symlink, CommitDirectory
//                                           reading without copies; writing so that a crash leaves old or new
//   crc32c, StoredRange                     sums of stored ranges
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/commit_directory.hpp"
#include "lerobot/formats/crc32c.hpp"
#include "lerobot/formats/json.hpp"
#include "lerobot/formats/mapped_file.hpp"
#include "lerobot/formats/safetensors.hpp"
