#include <torch/torch.h>

#include "fsdp/call_order.hpp"
#include "fsdp/slab.hpp"

#include <catch2/catch.hpp>

#include "lerobot/mesh/shard.hpp"

using namespace lerobot;
using namespace lerobot::fsdp;

namespace {

at::Tensor slabs_of(const SlabLayout& layout, at::ScalarType dtype) {
  return torch::full({layout.num_shards * layout.slab_nbytes / static_cast<std::int64_t>(c10::elementSize(dtype))}, 77.0,
                     dtype);
}

}  // namespace

TEST_CASE("slab: parameters begin at multiples of 16 elements and a slab is as long on every rank", "[slab]") {
  const std::vector<SlabPart> parts{{{5, 3}, at::kFloat}, {{1, 1}, at::kFloat}, {{64, 8}, at::kFloat}};
  const SlabLayout layout = slab_layout(parts, 4);
  REQUIRE(layout.offsets == std::vector<std::int64_t>{0, 64, 128});       // 2 rows of 3; 1 row of 1
  REQUIRE(layout.slab_nbytes == 128 + 16 * 8 * 4);
  REQUIRE(whole_layout(parts).offsets == std::vector<std::int64_t>{0, 64, 128});
  REQUIRE(whole_layout(parts).nbytes == 128 + 64 * 8 * 4);
}

TEST_CASE("slab: dtypes may mix, each at a multiple of its own size", "[slab]") {
  const std::vector<SlabPart> parts{{{3, 3}, at::kBFloat16}, {{3, 1}, at::kFloat}, {{2, 2}, at::kLong}};
  const SlabLayout layout = slab_layout(parts, 2);
  REQUIRE(layout.offsets == std::vector<std::int64_t>{0, 32, 96});
  REQUIRE(layout.slab_nbytes == 96 + 16 * 8);
}

TEST_CASE("slab: dealing rows to slabs and putting them together again gives the same bytes", "[slab]") {
  for (const int num_shards : {1, 2, 3, 4, 8})
    for (const std::int64_t rows : {1, 3, 4, 5, 9})
      for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
        CAPTURE(num_shards, rows);
        const std::vector<SlabPart> parts{{{2, 7}, dtype}, {{rows, 5}, dtype}, {{3, 1}, dtype}};
        const SlabLayout layout = slab_layout(parts, num_shards);
        const at::Tensor slabs = slabs_of(layout, dtype);
        const at::Tensor whole = torch::arange(1, rows * 5 + 1, dtype).view({rows, 5});
        copy_to_slabs(whole, slabs, layout, layout.offsets[1], layout.offsets[2], parts[1].shape, dtype);
        const at::Tensor back = torch::zeros_like(whole);
        copy_from_slabs(back, slabs, layout, layout.offsets[1], parts[1].shape);
        REQUIRE(back.equal(whole));
        // Everything that is no row is zero, and nothing beyond is touched.
        const auto begin = layout.offsets[1] / static_cast<std::int64_t>(whole.itemsize());
        const auto end = layout.offsets[2] / static_cast<std::int64_t>(whole.itemsize());
        const at::Tensor grid = slabs.view({num_shards, -1});
        REQUIRE(grid.slice(1, begin, end).to(at::kDouble).sum().item<double>() == whole.to(at::kDouble).sum().item<double>());
        REQUIRE(grid.slice(1, 0, begin).eq(77).all().item<bool>());
        REQUIRE(grid.slice(1, end).eq(77).all().item<bool>());
      }
}

TEST_CASE("slab: gradients are converted on the way, with the same rows and zeros", "[slab]") {
  const std::vector<SlabPart> parts{{{5, 3}, at::kBFloat16}};
  const SlabLayout layout = slab_layout(parts, 4);
  const at::Tensor slabs = slabs_of(layout, at::kBFloat16);
  const at::Tensor whole = torch::arange(15, at::kFloat).view({5, 3});
  copy_to_slabs(whole, slabs, layout, 0, layout.slab_nbytes, parts[0].shape, at::kBFloat16);
  const at::Tensor grid = slabs.view({4, 16}).to(at::kFloat);
  REQUIRE(grid[0].slice(0, 0, 6).equal(torch::arange(0, 6, at::kFloat)));
  REQUIRE(grid[2].slice(0, 0, 3).equal(torch::arange(12, 15, at::kFloat)));
  REQUIRE(grid.sum().item<float>() == 105.0F);
}

TEST_CASE("CallOrder: predicts the last pass until a pass takes another way", "[slab]") {
  CallOrder order;
  order.begin_pass();
  for (const int unit : {3, 0, 1, 0}) REQUIRE(order.note(unit) == CallOrder::kUnknown);
  order.begin_pass();
  REQUIRE(order.note(3) == 0);
  REQUIRE(order.note(0) == 1);
  REQUIRE(order.note(2) == CallOrder::kUnknown);  // 1 was expected
  REQUIRE(order.note(0) == CallOrder::kUnknown);
  order.begin_pass();
  REQUIRE(order.note(3) == 0);
  REQUIRE(order.note(0) == 2);
  order.abandon_pass();  // a throw: what was learnt before still holds
  order.begin_pass();
  REQUIRE(order.note(3) == 0);

  CallOrder fresh;
  fresh.expect_if_new({2, 1});
  fresh.begin_pass();
  REQUIRE(fresh.note(2) == 1);
}
