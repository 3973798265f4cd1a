#include "checkpoint/verified_files.hpp"

#include <utility>

#include "lerobot/formats/json.hpp"
#include "lerobot/formats/mapped_file.hpp"

namespace lerobot::checkpoint {

VerifiedFiles::VerifiedFiles(std::filesystem::path root)
    : root_(std::move(root)), manifest_(formats::Manifest::read(root_)) {}

const formats::ManifestFile* VerifiedFiles::listed(const std::filesystem::path& file) const {
  return manifest_ ? manifest_->find(file.lexically_relative(root_).generic_string()) : nullptr;
}

void VerifiedFiles::require_intact(const std::filesystem::path& file) const {
  const formats::MappedFile mapped(file);
  formats::RangeVerifier(listed(file), file).require(mapped.bytes(), 0, mapped.bytes().size());
}

Json VerifiedFiles::json(const std::filesystem::path& file) const {
  const formats::MappedFile mapped(file);
  formats::RangeVerifier(listed(file), file).require(mapped.bytes(), 0, mapped.bytes().size());
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  return formats::parse_json(text, file, ErrorKind::kCheckpoint);
}

}  // namespace lerobot::checkpoint
