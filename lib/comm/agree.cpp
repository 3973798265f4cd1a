#include "lerobot/comm/agree.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "lerobot/comm/collectives.hpp"

namespace lerobot::comm {
namespace {

// Text travels as bytes of CPU tensors; through the device where a group knows no CPU tensors.
at::Device transport_device(c10d::ProcessGroup& group) {
  const auto devices = group.getDeviceTypes();
  const auto cpu = std::find_if(devices.begin(), devices.end(), [](const c10::Device& d) { return d.is_cpu(); });
  if (cpu != devices.end() || devices.empty()) return at::kCPU;
  return group.getBoundDeviceId().value_or(devices.front());
}

at::Tensor to_bytes(std::string_view text, std::size_t padded) {
  auto bytes = at::zeros({static_cast<std::int64_t>(padded)}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string to_text(const at::Tensor& bytes, std::int64_t length) {
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<std::size_t>(length)};
}

}  // namespace

std::vector<std::string> all_gather_text(c10d::ProcessGroup& group, std::string_view text) {
  const at::Device device = transport_device(group);
  const std::int64_t num_ranks = group.getSize();
  auto length = at::empty({1}, at::kLong);
  length.data_ptr<std::int64_t>()[0] = static_cast<std::int64_t>(text.size());
  auto lengths = at::empty({num_ranks}, length.options().device(device));
  all_gather(group, lengths, length.to(device));
  lengths = lengths.cpu();
  const std::int64_t* const each = lengths.data_ptr<std::int64_t>();
  const std::int64_t longest = *std::max_element(each, each + num_ranks);
  std::vector<std::string> texts(static_cast<std::size_t>(num_ranks));
  if (longest == 0) return texts;
  auto all = at::empty({num_ranks, longest}, at::TensorOptions(at::kByte).device(device));
  all_gather(group, all, to_bytes(text, static_cast<std::size_t>(longest)).to(device));
  all = all.cpu();
  for (std::int64_t r = 0; r < num_ranks; ++r) texts[static_cast<std::size_t>(r)] = to_text(all[r], each[r]);
  return texts;
}

std::string broadcast_text(c10d::ProcessGroup& group, std::string_view text, int root) {
  const at::Device device = transport_device(group);
  const bool is_root = group.getRank() == root;
  auto length = at::zeros({1}, at::kLong);
  if (is_root) length.data_ptr<std::int64_t>()[0] = static_cast<std::int64_t>(text.size());
  length = length.to(device);
  broadcast(group, length, root);
  const std::int64_t n = length.cpu().data_ptr<std::int64_t>()[0];
  if (n == 0) return {};
  auto bytes = to_bytes(is_root ? text : std::string_view(), static_cast<std::size_t>(n)).to(device);
  broadcast(group, bytes, root);
  return to_text(bytes.cpu(), n);
}

void agree_error(c10d::ProcessGroup& group, ErrorKind kind, std::string_view what, const std::exception_ptr& failure) {
  // One byte of kind in front of the text; nothing at all means success.
  std::string mine;
  if (failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const Error& e) {
      mine = static_cast<char>('0' + static_cast<int>(e.kind())) + std::string(e.what());
    } catch (const std::exception& e) {
      mine = static_cast<char>('0' + static_cast<int>(kind)) + std::string(e.what());
    }
  }
  const std::vector<std::string> all = all_gather_text(group, mine);
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& t) { return !t.empty(); });
  if (first == all.end()) return;
  const auto agreed_kind = static_cast<ErrorKind>((*first)[0] - '0');
  const std::string text = first->substr(1);
  const bool is_alike = std::all_of(all.begin(), all.end(), [&](const std::string& t) { return t == *first; });
  if (is_alike) throw AgreedError(agreed_kind, text);
  throw AgreedError(agreed_kind, fmt::format("{}: rank {} failed: {}", what, first - all.begin(), text));
}

}  // namespace lerobot::comm
