#include "checkpoint/model_file.hpp"

#include <torch/torch.h>

#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "checkpoint/tensor_file.hpp"
#include "lerobot/comm/agree.hpp"
#include "lerobot/comm/collectives.hpp"

namespace lerobot::checkpoint {

namespace {

/// The tensors to store and, per alias, the name it is stored under.
struct Unique {
  mesh::StateDict stored;
  formats::SafetensorsMetadata aliases;
};

Unique without_aliases(const mesh::StateDict& model) {
  using Place = std::tuple<const void*, std::vector<std::int64_t>, std::vector<std::int64_t>, at::ScalarType>;
  std::map<Place, std::string> first_name;
  const auto place_of = [](const mesh::TensorSlice& slice) {
    return Place{slice.local.const_data_ptr(), slice.global_shape, slice.local.strides().vec(),
                 slice.local.scalar_type()};
  };
  for (const auto& [name, slice] : model) {
    if (slice.local.numel() == 0) continue;
    auto [place, is_new] = first_name.emplace(place_of(slice), name);
    if (!is_new && name < place->second) place->second = name;
  }
  Unique out;
  for (const auto& [name, slice] : model) {
    const auto place = slice.local.numel() == 0 ? first_name.end() : first_name.find(place_of(slice));
    if (place == first_name.end() || place->second == name)
      out.stored.emplace_back(name, slice);
    else
      out.aliases.emplace_back(name, place->second);
  }
  return out;
}

/// Takes over what rank 0 stores: a rank whose rows are none can't see which tensors are one.
void agree_on_names(Unique& unique, const mesh::StateDict& state, c10d::ProcessGroup& group) {
  std::string names;
  for (const auto& [name, slice] : unique.stored) names += name + '\n';
  names = comm::broadcast_text(group, names);
  if (group.getRank() == 0) return;
  unique.stored.clear();
  std::size_t begin = 0;
  for (const auto& [name, slice] : state) {
    const std::size_t end = names.find('\n', begin);
    if (end == std::string::npos) break;
    if (names.compare(begin, end - begin, name) != 0) continue;
    unique.stored.emplace_back(name, slice);
    begin = end + 1;
  }
}

/// The whole tensor on every rank of the group. Ranks send equal parts, so the last ones pad theirs.
at::Tensor gather_rows(const mesh::TensorSlice& slice, c10d::ProcessGroup& group) {
  const at::Tensor rows = slice.local.detach().contiguous();
  std::vector<std::int64_t> shape = slice.global_shape;
  const std::int64_t num_rows = shape[0], size = group.getSize();
  shape[0] = (num_rows + size - 1) / size;
  at::Tensor part = rows;
  if (rows.size(0) != shape[0]) {
    part = at::zeros(shape, rows.options());
    part.narrow(0, 0, rows.size(0)).copy_(rows);
  }
  shape[0] *= size;
  const at::Tensor all = at::empty(shape, rows.options());
  comm::all_gather(group, all, part);
  return all.narrow(0, 0, num_rows);
}

}  // namespace

void write_gathered_file(const std::filesystem::path& path, const mesh::StateDict& state, const Ranks& ranks,
                         bool is_main, FirstFailure& failure, formats::SafetensorsMetadata metadata) {
  if (ranks.replica_rank != 0) return;
  if (!is_main && !ranks.shard) return;
  Unique unique = without_aliases(state);
  if (ranks.shard) agree_on_names(unique, state, *ranks.shard);
  std::optional<formats::SafetensorsWriter> writer;
  if (is_main)
    failure.run([&] {
      std::vector<formats::SafetensorsSpec> specs;
      for (const auto& [name, slice] : unique.stored)
        specs.push_back(spec_of(name, slice.local.scalar_type(), slice.global_shape));
      metadata.insert(metadata.end(), unique.aliases.begin(), unique.aliases.end());
      writer.emplace(path, std::move(specs), metadata);
    });
  const at::NoGradGuard no_grad;
  for (const auto& [name, slice] : unique.stored) {
    const at::Tensor whole = slice.is_sharded ? gather_rows(slice, *ranks.shard) : slice.local;
    if (!is_main) continue;
    failure.run([&, &entry = name] {
      const at::Tensor host = host_copy(whole);
      writer->write(entry, bytes_of(host));
    });
  }
  if (is_main) failure.run([&] { (void)writer->commit(); });
}

bool all_finite(const mesh::StateDict& model) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, slice] : model) {
    if (!slice.local.is_floating_point() || slice.local.numel() == 0) continue;
    const auto [low, high] = at::aminmax(slice.local.detach());  // NaN passes through both
    if (!std::isfinite(low.item<double>()) || !std::isfinite(high.item<double>())) return false;
  }
  return true;
}

}  // namespace lerobot::checkpoint
