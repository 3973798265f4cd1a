#pragma once
// formats: readers and writers of files, with no tensor library. Every file is taken as hostile.
//   read_json, dump_python                  JSON text as Python's json module writes it
//   SafetensorsFile, SafetensorsWriter      one file of named tensors
//   DcpMetadata, TorchTensorFrame, read_torch_tensor
//                                           torch's distributed checkpoints: first the index, then its items
//   PickleDocument, read_stored_zip         what those are made of; nothing in a pickle is ever executed
//   Manifest, RangeVerifier, crc32c         sums of stored ranges, checked while reading
//   MappedFile, AtomicFile, replace_symlink, CommitDirectory
//                                           reading without copies; writing so that a crash leaves old or new
#include "lerobot/formats/atomic_file.hpp"
#include "lerobot/formats/commit_directory.hpp"
#include "lerobot/formats/crc32c.hpp"
#include "lerobot/formats/dcp_metadata.hpp"
#include "lerobot/formats/json.hpp"
#include "lerobot/formats/manifest.hpp"
#include "lerobot/formats/mapped_file.hpp"
#include "lerobot/formats/pickle.hpp"
#include "lerobot/formats/safetensors.hpp"
#include "lerobot/formats/torch_item.hpp"
#include "lerobot/formats/zip.hpp"
