#pragma once

#include <array>

#include "lerobot/core/dtype.hpp"
#include "lerobot/formats/pickle.hpp"

namespace lerobot::formats::dcp {

inline constexpr std::string_view kModule = "torch.distributed.checkpoint.metadata";
inline constexpr PickleGlobal kMetadata{kModule, "Metadata"};
inline constexpr PickleGlobal kTensor{kModule, "TensorStorageMetadata"};
inline constexpr PickleGlobal kProperties{kModule, "TensorProperties"};
inline constexpr PickleGlobal kMemoryFormat{kModule, "_MEM_FORMAT_ENCODING"};
inline constexpr PickleGlobal kChunk{kModule, "ChunkStorageMetadata"};
inline constexpr PickleGlobal kBytes{kModule, "BytesStorageMetadata"};
inline constexpr PickleGlobal kIndex{kModule, "MetadataIndex"};
inline constexpr PickleGlobal kStorageMeta{kModule, "StorageMeta"};
inline constexpr PickleGlobal kStorageInfo{"torch.distributed.checkpoint.filesystem", "_StorageInfo"};
inline constexpr PickleGlobal kLayout{"torch.serialization", "_get_layout"};
inline constexpr PickleGlobal kSize{"torch", "Size", true};

/// Every class and function that a `.metadata` may name.
inline constexpr auto kAllowed = [] {
  constexpr std::array kNamed{kMetadata, kTensor, kProperties, kMemoryFormat, kChunk, kBytes, kIndex, kStorageMeta,
                              kStorageInfo, kLayout, kSize, PickleGlobal{"collections", "OrderedDict"},
                              // The folder that the checkpoint was saved to; it is not looked at.
                              PickleGlobal{"pathlib", "PosixPath"}, PickleGlobal{"pathlib", "PurePosixPath"},
                              PickleGlobal{"pathlib", "WindowsPath"}, PickleGlobal{"pathlib._local", "PosixPath"},
                              PickleGlobal{"pathlib._local", "PurePosixPath"},
                              PickleGlobal{"pathlib._local", "WindowsPath"}};
  std::array<PickleGlobal, kNamed.size() + kDTypes.size()> all{};
  std::size_t n = 0;
  for (const PickleGlobal& global : kNamed) all[n++] = global;
  for (const DTypeInfo& dtype : kDTypes) all[n++] = {"torch", dtype.torch};
  return all;
}();

}  // namespace lerobot::formats::dcp
