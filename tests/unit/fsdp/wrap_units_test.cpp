#include "lerobot/fsdp/wrap_units.hpp"

#include <catch2/catch.hpp>

#include "lerobot/core/error.hpp"

using namespace lerobot;
using namespace lerobot::fsdp;
using Catch::Matchers::Contains;

namespace {

/// A tree written as lines: path, class, and the element counts of its own parameters.
class TreeBuilder {
 public:
  TreeBuilder& add(const std::string& path, const std::string& class_name, const std::vector<std::int64_t>& numels,
                   bool has_hook_point = true) {
    ModuleInfo info{.path = path, .class_name = class_name, .parent = parent_of(path), .has_hook_point = has_hook_point,
                    .has_forward = class_name != "ModuleList", .params = {}};
    for (const std::int64_t numel : numels) {
      info.params.push_back({"w" + std::to_string(info.params.size()), next_identity_++, numel, numel == 1 ? 0 : 2});
    }
    tree_.push_back(std::move(info));
    return *this;
  }
  TreeBuilder& tie(std::size_t module, std::size_t to_module) {
    tree_[module].params[0].identity = tree_[to_module].params[0].identity;
    return *this;
  }
  operator ModuleTree() const { return tree_; }  // NOLINT

 private:
  [[nodiscard]] std::optional<std::size_t> parent_of(const std::string& path) const {
    if (path.empty()) return std::nullopt;
    const std::size_t dot = path.rfind('.');
    const std::string parent = dot == std::string::npos ? "" : path.substr(0, dot);
    for (std::size_t m = 0; m < tree_.size(); ++m)
      if (tree_[m].path == parent) return m;
    throw std::logic_error("no parent of " + path);
  }
  ModuleTree tree_;
  std::size_t next_identity_ = 0;
};

/// Policy > encoder > ModuleList of two layers, each with a stock linear; a head; a stock backbone.
TreeBuilder small_policy() {
  TreeBuilder tree;
  tree.add("", "Policy", {10})
      .add("encoder", "Encoder", {})
      .add("encoder.layers", "ModuleList", {})
      .add("encoder.layers.0", "Layer", {30})
      .add("encoder.layers.0.linear", "Linear", {70}, false)
      .add("encoder.layers.1", "Layer", {30})
      .add("encoder.layers.1.linear", "Linear", {70}, false)
      .add("head", "Head", {50})
      .add("backbone", "Backbone", {500}, false);
  return tree;
}

std::vector<std::string> paths(const ModuleTree& tree, const WrapUnits& units) {
  std::vector<std::string> result;
  for (const WrapUnit& unit : units.units) result.push_back(tree[unit.module].path);
  return result;
}

std::vector<std::string> fqns(const std::vector<UnitParam>& params) {
  std::vector<std::string> result;
  for (const UnitParam& param : params) result.push_back(param.fqn);
  return result;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("wrap units: modules of a named class are units, bottom-up, and the root takes the rest last", "[wrap_units]") {
  const ModuleTree tree = small_policy();
  const WrapUnits units = resolve_wrap_units(tree, {.class_names = {"Layer"}, .min_num_params = {}, .declared = {}});
  REQUIRE(paths(tree, units) == Strings{"encoder.layers.0", "encoder.layers.1", ""});
  REQUIRE(fqns(units.units[0].params) == Strings{"encoder.layers.0.w0", "encoder.layers.0.linear.w0"});
  REQUIRE(fqns(units.units[2].params) == Strings{"w0", "head.w0", "backbone.w0"});
  REQUIRE(units.ignored.empty());
}

TEST_CASE("wrap units: a nested unit comes before the one around it and keeps its own parameters", "[wrap_units]") {
  ModuleTree tree = small_policy();
  tree[1].params.push_back({"norm", 99, 8, 1});
  const WrapUnits units = resolve_wrap_units(tree, {.class_names = {"Encoder", "Layer"}, .min_num_params = {}, .declared = {}});
  REQUIRE(paths(tree, units) == Strings{"encoder.layers.0", "encoder.layers.1", "encoder", ""});
  REQUIRE(fqns(units.units[2].params) == Strings{"encoder.norm"});
}

TEST_CASE("wrap units: a class whose modules have no parameters of their own adds no unit", "[wrap_units]") {
  const ModuleTree tree = small_policy();
  const WrapUnits units = resolve_wrap_units(tree, {.class_names = {"Encoder", "Layer"}, .min_num_params = {}, .declared = {}});
  REQUIRE(paths(tree, units) == Strings{"encoder.layers.0", "encoder.layers.1", ""});
}

TEST_CASE("wrap units: given names win over the policy's declaration, an empty list counts as not given", "[wrap_units]") {
  const ModuleTree tree = small_policy();
  REQUIRE(paths(tree, resolve_wrap_units(tree, {.class_names = {"Head"}, .min_num_params = {}, .declared = {"Layer"}})) ==
          Strings{"head", ""});
  REQUIRE(paths(tree, resolve_wrap_units(tree, {.class_names = {}, .min_num_params = {}, .declared = {"Head"}})) ==
          Strings{"head", ""});
}

TEST_CASE("wrap units: by size, strictly more than the threshold over the whole subtree; lists are passed over", "[wrap_units]") {
  TreeBuilder builder;
  builder.add("", "Policy", {10})
      .add("encoder", "ModuleList", {})
      .add("encoder.0", "Layer", {40})
      .add("encoder.0.linear", "Linear", {60})
      .add("encoder.1", "Layer", {40})
      .add("encoder.1.linear", "Linear", {61});
  const ModuleTree tree = builder;
  const auto by_size = [&](std::int64_t n) {
    return paths(tree, resolve_wrap_units(tree, {.class_names = {}, .min_num_params = n, .declared = {"Layer"}}));
  };
  REQUIRE(by_size(100) == Strings{"encoder.1", ""});  // 101 > 100, 100 is not
  REQUIRE(by_size(99) == Strings{"encoder.0", "encoder.1", ""});
  REQUIRE(by_size(60) == Strings{"encoder.0", "encoder.1.linear", "encoder.1", ""});  // nested units still count above
}

TEST_CASE("wrap units: by size, a tied parameter counts once", "[wrap_units]") {
  TreeBuilder builder;
  builder.add("", "Policy", {10}).add("a", "A", {4}).add("a.in", "In", {60}).add("a.out", "Out", {60}).tie(3, 2);
  const ModuleTree tree = builder;
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, {.class_names = {}, .min_num_params = 64, .declared = {}}),
                      Contains("no module below Policy has more than 64") && Contains("\"a\", has 64"));
}

TEST_CASE("wrap units: what was not or wrongly asked for is refused with the flags, and with the classes there are", "[wrap_units]") {
  const ModuleTree tree = small_policy();
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, {}), Contains("Policy") && Contains("accelerator.fsdp.wrap_modules") &&
                                                        Contains("min_num_params") && Contains("Encoder, Head, Layer"));
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, {.class_names = {"NoSuchBlock"}, .min_num_params = {}, .declared = {}}),
                      Contains("Could not find") && Contains("NoSuchBlock") && Contains("Encoder, Head, Layer"));
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, {.class_names = {"Layer"}, .min_num_params = 10, .declared = {}}),
                      Contains("mutually exclusive"));
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, {.class_names = {}, .min_num_params = 0, .declared = {}}),
                      Contains("min_num_params") && Contains("got 0"));
  try {
    (void)resolve_wrap_units(tree, {});
    FAIL("did not throw");
  } catch (const Error& e) {
    REQUIRE(e.kind() == ErrorKind::kConfig);
  }
}

TEST_CASE("wrap units: a unit without a hook point is refused by path and class", "[wrap_units]") {
  const ModuleTree tree = small_policy();
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, {.class_names = {"Backbone"}, .min_num_params = {}, .declared = {}}),
                      Contains("\"backbone\"") && Contains("Backbone") && Contains("LEROBOT_MODULE"));
  ModuleTree bare = tree;
  bare[0].has_hook_point = false;
  REQUIRE_THROWS_WITH(resolve_wrap_units(bare, {.class_names = {"Layer"}, .min_num_params = {}, .declared = {}}),
                      Contains("the root module"));
}

TEST_CASE("wrap units: a scalar parameter is refused by name, unless its module is ignored", "[wrap_units]") {
  TreeBuilder builder = small_policy();
  builder.add("head.scale", "Scale", {1});
  const ModuleTree tree = builder;
  const WrapPolicy layers{.class_names = {"Layer"}, .min_num_params = {}, .declared = {}};
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, layers), Contains("head.scale.w0") && Contains("scalar"));
  REQUIRE(fqns(resolve_wrap_units(tree, layers, "head\\.scale").ignored) == Strings{"head.scale.w0"});
}

TEST_CASE("wrap units: a tied parameter stays one inside a unit and is refused across two", "[wrap_units]") {
  TreeBuilder inside = small_policy();
  inside.tie(7, 8);  // head and backbone, both of the root
  const WrapPolicy layers{.class_names = {"Layer"}, .min_num_params = {}, .declared = {}};
  const WrapUnits units = resolve_wrap_units(inside, layers);
  REQUIRE(fqns(units.units[2].params) == Strings{"w0", "head.w0"});
  REQUIRE(units.units[2].params[1].places.size() == 2);

  TreeBuilder across = small_policy();
  across.tie(4, 6);
  REQUIRE_THROWS_WITH(resolve_wrap_units(across, layers), Contains("shared") && Contains("encoder.layers.0.linear.w0") &&
                                                              Contains("encoder.layers.1.linear.w0"));
  TreeBuilder with_ignored = small_policy();
  with_ignored.tie(7, 8);
  REQUIRE_THROWS_WITH(resolve_wrap_units(with_ignored, layers, "head"), Contains("shared") && Contains("ignored"));
}

TEST_CASE("wrap units: ignored_modules matches whole paths and takes everything below", "[wrap_units]") {
  const ModuleTree tree = small_policy();
  const WrapPolicy layers{.class_names = {"Layer"}, .min_num_params = {}, .declared = {}};
  REQUIRE(fqns(resolve_wrap_units(tree, layers, "head").ignored) == Strings{"head.w0"});
  const WrapUnits part = resolve_wrap_units(tree, layers, ".*\\.1");
  REQUIRE(fqns(part.ignored) == Strings{"encoder.layers.1.w0", "encoder.layers.1.linear.w0"});
  REQUIRE(paths(tree, part) == Strings{"encoder.layers.0", ""});
  const WrapUnits none = resolve_wrap_units(tree, layers, "layers");  // part of a path only
  REQUIRE(none.ignored.empty());
  REQUIRE_FALSE(none.ignored_modules_matched);
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, layers, "*"), Contains("ignored_modules") && Contains("\"*\""));
  REQUIRE_THROWS_WITH(resolve_wrap_units(tree, layers, ".*"), Contains("ignored_modules") && Contains("root"));
}
