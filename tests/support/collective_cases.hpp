#pragma once

#include <torch/torch.h>

#include <vector>

#include "lerobot/comm/comm.hpp"
#include "support/check.hpp"

// What every group of the library must do, over MPI and among threads alike.
namespace lerobot::testing {

using comm::ProcessGroupPtr;

/// Values of rank `rank` that no two ranks share, and whose float sums depend on the order of addition.
inline at::Tensor rank_values(std::int64_t numel, int rank, at::ScalarType dtype) {
  const auto i = torch::arange(numel, at::kDouble);
  if (at::isFloatingType(dtype)) {
    return (torch::sin(i * 12.9898 + 78.233 * rank) * torch::pow(10.0, i % 7 - 3)).to(dtype);
  }
  if (dtype == at::kBool) return ((i + rank) % 3 == 0);
  return ((i * 7 + rank * 3) % 5).to(dtype);
}

/// The sum in tree order, by tensor operations: the reference.
inline at::Tensor tree_sum(const std::vector<at::Tensor>& values) {
  return comm::tree_reduce(std::span<const at::Tensor>(values),
                           [](const at::Tensor& a, const at::Tensor& b) { return a + b; });
}

inline std::vector<at::Tensor> all_values(std::int64_t numel, int num_ranks, at::ScalarType dtype) {
  std::vector<at::Tensor> values;
  for (int r = 0; r < num_ranks; ++r) values.push_back(rank_values(numel, r, dtype));
  return values;
}

inline const std::vector<at::ScalarType>& dtypes() {
  static const std::vector<at::ScalarType> kAll{at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt,
                                                at::kLong,  at::kByte,   at::kChar,     at::kShort};
  return kAll;
}

// Sizes on both sides of every threshold, and some that ranks can't share evenly.
inline const std::vector<std::int64_t>& sizes() {
  static const std::vector<std::int64_t> kAll{1, 3, 1025, 9001};
  return kAll;
}

inline void check_equal(const at::Tensor& got, const at::Tensor& expected, const std::string& what) {
  check(at::equal(got, expected), "{}: got {} expected {}", what, c10::str(got.flatten().slice(0, 0, 4)),
        c10::str(expected.flatten().slice(0, 0, 4)));
}

inline void check_sums(const ProcessGroupPtr& group) {
  const int rank = group->getRank(), n = group->getSize();
  for (const auto dtype : dtypes()) {
    for (const auto numel : sizes()) {
      const auto what = fmt::format("{} {}", c10::toString(dtype), numel);
      const auto expected = tree_sum(all_values(numel * n, n, dtype));
      auto whole = rank_values(numel * n, rank, dtype);
      comm::all_reduce(*group, whole);
      check_equal(whole, expected, "all_reduce " + what);

      auto part = torch::empty({numel}, dtype);
      comm::reduce_scatter(*group, part, rank_values(numel * n, rank, dtype));
      check_equal(part, expected.slice(0, rank * numel, (rank + 1) * numel), "reduce_scatter " + what);
    }
  }
}

inline void check_other_reductions(const ProcessGroupPtr& group) {
  const int rank = group->getRank(), n = group->getSize();
  const auto values = all_values(3000, n, at::kFloat);
  const auto stacked = torch::stack(values);
  auto x = rank_values(3000, rank, at::kFloat);
  comm::all_reduce(*group, x, c10d::ReduceOp::AVG);
  check_equal(x, tree_sum(values) / n, "AVG");
  x = rank_values(3000, rank, at::kFloat);
  comm::all_reduce(*group, x, c10d::ReduceOp::MAX);
  check_equal(x, stacked.amax(0), "MAX");
  x = rank_values(3000, rank, at::kFloat);
  comm::all_reduce(*group, x, c10d::ReduceOp::MIN);
  check_equal(x, stacked.amin(0), "MIN");
  x = rank_values(3000, rank, at::kFloat);
  comm::all_reduce(*group, x, c10d::makePreMulSum(0.25));
  std::vector<at::Tensor> scaled;
  for (const auto& v : values) scaled.push_back(v * 0.25);
  check_equal(x, tree_sum(scaled), "PREMUL_SUM");
  auto flags = rank_values(100, rank, at::kBool);
  comm::all_reduce(*group, flags);
  check_equal(flags, torch::stack(all_values(100, n, at::kBool)).any(0), "SUM of bool");
  auto bits = torch::full({5}, 1 << rank, at::kInt);
  comm::all_reduce(*group, bits, c10d::ReduceOp::BOR);
  check_equal(bits, torch::full({5}, (1 << n) - 1, at::kInt), "BOR");
  auto nan = torch::full({3}, rank == n - 1 ? std::nan("") : 1.0);
  comm::all_reduce(*group, nan, c10d::ReduceOp::MAX);
  check(nan.isnan().all().item<bool>(), "MAX must pass a NaN on");
  check_throws(
      [&] {
        auto ints = torch::ones({3}, at::kInt);
        comm::all_reduce(*group, ints, c10d::ReduceOp::BAND);
        auto floats = torch::ones({3});
        comm::all_reduce(*comm::single_rank_group("alone"), floats, c10d::ReduceOp::BAND);
      },
      "no kernel for dtype Float");
}

inline void check_moves(const ProcessGroupPtr& group) {
  const int rank = group->getRank(), n = group->getSize();
  for (const std::int64_t numel : {1L, 5L, 20000L}) {
    auto gathered = torch::empty({n, numel}, at::kInt);
    comm::all_gather(*group, gathered, rank_values(numel, rank, at::kInt));
    check_equal(gathered, torch::stack(all_values(numel, n, at::kInt)), "all_gather");
    auto in_place = torch::zeros({n, numel}, at::kInt);
    in_place[rank].copy_(rank_values(numel, rank, at::kInt));
    comm::all_gather(*group, in_place, in_place[rank]);
    check_equal(in_place, gathered, "all_gather in place");
    for (int root = 0; root < n; ++root) {
      auto x = rank_values(numel, rank, at::kFloat);
      comm::broadcast(*group, x, root);
      check_equal(x, rank_values(numel, root, at::kFloat), "broadcast");
      std::vector<at::Tensor> y{rank_values(numel, rank, at::kFloat)};
      c10d::ReduceOptions reduce;
      reduce.rootRank = root;
      group->reduce(y, reduce)->wait();
      const auto sum = tree_sum(all_values(numel, n, at::kFloat));
      check_equal(y[0], rank == root ? sum : rank_values(numel, rank, at::kFloat), "reduce");
    }
  }
}

// The calls that a c10d group has beyond those above.
inline void check_c10d_calls(const ProcessGroupPtr& group) {
  const int rank = group->getRank(), n = group->getSize();
  std::vector<at::Tensor> in{torch::full({2}, rank)};
  std::vector<std::vector<at::Tensor>> lists(1);
  for (int r = 0; r < n; ++r) lists[0].push_back(torch::zeros({2}, at::kLong));
  group->allgather(lists, in)->wait();
  for (int r = 0; r < n; ++r) check_equal(lists[0][static_cast<std::size_t>(r)], torch::full({2}, r), "allgather");

  std::vector<std::vector<at::Tensor>> at_root;
  if (rank == n - 1) at_root = {{}};
  for (int r = 0; r < n && rank == n - 1; ++r) at_root[0].push_back(torch::zeros({2}, at::kLong));
  c10d::GatherOptions gather;
  gather.rootRank = n - 1;
  group->gather(at_root, in, gather)->wait();
  for (int r = 0; r < n && rank == n - 1; ++r) {
    check_equal(at_root[0][static_cast<std::size_t>(r)], torch::full({2}, r), "gather");
  }

  std::vector<std::vector<at::Tensor>> parts;
  if (rank == 0) parts = {{}};
  for (int r = 0; r < n && rank == 0; ++r) parts[0].push_back(torch::full({3}, 10 * r));
  std::vector<at::Tensor> mine{torch::zeros({3}, at::kLong)};
  group->scatter(mine, parts)->wait();
  check_equal(mine[0], torch::full({3}, 10 * rank), "scatter");

  std::vector<std::vector<at::Tensor>> terms(1);
  for (int r = 0; r < n; ++r) terms[0].push_back(torch::full({2}, r + rank));
  std::vector<at::Tensor> sum{torch::zeros({2}, at::kLong)};
  group->reduce_scatter(sum, terms)->wait();
  check_equal(sum[0], torch::full({2}, n * rank + n * (n - 1) / 2), "reduce_scatter of lists");

  // Rank r sends r + 1 rows to everyone.
  std::vector<std::int64_t> out_splits, in_splits(static_cast<std::size_t>(n), rank + 1);
  for (int r = 0; r < n; ++r) out_splits.push_back(r + 1);
  auto rows_out = torch::empty({n * (n + 1) / 2, 2}, at::kLong);
  auto rows_in = torch::full({n * (rank + 1), 2}, rank);
  group->getBackend(at::kCPU)->alltoall_base(rows_out, rows_in, out_splits, in_splits)->wait();
  std::int64_t row = 0;
  for (int r = 0; r < n; ++r) {
    check_equal(rows_out.slice(0, row, row + r + 1), torch::full({r + 1, 2}, r), "alltoall_base");
    row += r + 1;
  }

  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  if (n > 1) {
    // Both directions at once and far more than MPI buffers: neither side may wait for the other to receive first.
    std::vector<at::Tensor> out{torch::full({200000}, rank)}, got{torch::zeros({200000}, at::kLong)};
    auto sent = group->send(out, next, 7);
    auto received = group->recv(got, previous, 7);
    received->wait();
    sent->wait();
    check_equal(got[0], torch::full({200000}, previous), "send and recv");
  }
  group->barrier()->wait();
}

// Partial sums over shard groups and then over replica groups are the sums over all ranks, to the bit.
inline void check_hybrid_sum(const ProcessGroupPtr& world) {
  const int rank = world->getRank(), n = world->getSize();
  check(n % 2 == 0, "needs an even number of ranks");
  const int shard_size = 2, replica = rank / shard_size, shard_rank = rank % shard_size;
  const auto shard = comm::split(world, replica, "dp_shard");
  const auto replicate = comm::split(world, shard_rank, "dp_replicate");
  check(shard->getRank() == shard_rank && shard->getSize() == 2, "shard group is wrong");
  check(replicate->getRank() == replica && replicate->getSize() == n / 2, "replica group is wrong");
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t part : {1L, 700L, 30011L}) {
      auto all = rank_values(part * shard_size, rank, dtype);
      comm::all_reduce(*world, all, c10d::ReduceOp::AVG);
      auto mine = torch::empty({part}, dtype);
      comm::reduce_scatter(*shard, mine, rank_values(part * shard_size, rank, dtype), c10d::ReduceOp::AVG);
      comm::all_reduce(*replicate, mine, c10d::ReduceOp::AVG);
      check_equal(mine, all.slice(0, shard_rank * part, (shard_rank + 1) * part), "hybrid mean");
    }
  }
}

// Works that overlap finish in order and with the right values, whoever waits for which.
inline void check_overlap(const ProcessGroupPtr& group) {
  const int rank = group->getRank(), n = group->getSize();
  std::vector<at::Tensor> tensors;
  std::vector<comm::WorkPtr> works;
  for (int i = 0; i < 40; ++i) {
    tensors.push_back(rank_values(100 + 997 * i, rank, at::kFloat));
    works.push_back(comm::start_all_reduce(*group, tensors.back()));
  }
  works.back()->wait();
  for (std::size_t i = 0; i < works.size(); ++i) {
    check(works[i]->isCompleted(), "work {} is not complete though a later one is", i);
    check_equal(tensors[i], tree_sum(all_values(tensors[i].numel(), n, at::kFloat)), "overlapped all_reduce");
  }
  auto x = torch::ones({10});
  auto future = comm::start_all_reduce(*group, x)->getFuture();
  future->wait();
  check(future->value().isTensorList(), "a future must hold a list of tensors");
  check_equal(x, torch::full({10}, float(n)), "future");
}

inline void check_texts(const ProcessGroupPtr& group) {
  const int rank = group->getRank(), n = group->getSize();
  const auto text_of = [](int r) { return std::string(static_cast<std::size_t>(r * 3), static_cast<char>('a' + r)); };
  const auto texts = comm::all_gather_text(*group, text_of(rank));
  for (int r = 0; r < n; ++r) check(texts[static_cast<std::size_t>(r)] == text_of(r), "text of rank {}", r);
  check(comm::broadcast_text(*group, rank == n - 1 ? "from the last" : "", n - 1) == "from the last", "broadcast_text");
  check(comm::broadcast_text(*group, "").empty(), "broadcast of an empty text");

  int num_runs = 0;
  comm::on_every_rank(*group, ErrorKind::kDataset, "reading", [&] { ++num_runs; });
  check(num_runs == 1, "a step must run once");
  try {
    comm::on_every_rank(*group, ErrorKind::kDataset, "reading", [&] {
      if (rank == n - 1) throw std::runtime_error("file is gone");
    });
    check(false, "a failure of one rank must reach all");
  } catch (const comm::AgreedError& e) {
    const std::string expected = n == 1 ? "file is gone" : fmt::format("reading: rank {} failed: file is gone", n - 1);
    check(e.what() == expected && e.kind() == ErrorKind::kDataset, "got \"{}\"", e.what());
  }
  try {
    comm::on_every_rank(*group, ErrorKind::kDataset, "reading", [] { fail(ErrorKind::kConfig, "all see it"); });
    check(false, "a failure of all ranks must be thrown");
  } catch (const comm::AgreedError& e) {
    check(std::string(e.what()) == "all see it" && e.kind() == ErrorKind::kConfig, "got \"{}\"", e.what());
  }
}

inline void check_wrong_calls(const ProcessGroupPtr& group) {
  const int n = group->getSize();
  check_throws([&] { comm::all_reduce(*group, torch::ones({4, 4}).slice(1, 0, 2)); }, "not dense");
  check_throws([&] { comm::all_gather(*group, torch::ones({4 * n + 1}), torch::ones({4})); }, "does not fit");
  check_throws([&] { comm::reduce_scatter(*group, torch::ones({4}), torch::ones({4 * n}, at::kDouble)); },
               "does not fit");
  check_throws([&] { comm::broadcast(*group, torch::ones({4}), n); }, "is not in group");
  comm::barrier(*group);
}

}  // namespace lerobot::testing
