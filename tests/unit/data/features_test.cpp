#include "lerobot/data/features.hpp"

#include <catch2/catch.hpp>

#include "lerobot/formats/json.hpp"
#include "support/collecting_logger.hpp"
#include "support/expect_error.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::Json;
using Ints = std::vector<std::int64_t>;

lerobot::data::DatasetInfo info(const char* name) {
  lerobot::test::CollectingLogger logger;
  return lerobot::data::read_info(std::string(LEROBOT_TEST_DATA) + "/datasets/" + name, logger);
}

}  // namespace

TEST_CASE("policy_features: as LeRobot (Python) wrote them into a policy's config", "[features]") {
  for (const auto& [dataset, folder] :
       {std::pair{"pusht_mini", "act_default_image"}, {"pusht_mini_state", "act_default_state"}}) {
    const Json config = lerobot::formats::read_json(
        std::string(LEROBOT_TEST_DATA) + "/act_default/" + folder + "/config.json", ErrorKind::kDataset);
    const auto features = lerobot::data::policy_features(info(dataset));
    CHECK(features.inputs == config["input_features"]);
    CHECK(features.outputs == config["output_features"]);
  }
}

TEST_CASE("delta_timestamps: by kind of feature, after renaming", "[features]") {
  const lerobot::data::DeltaIndices act{.observation = {}, .action = Ints{0, 1, 2}, .reward = {}};
  const auto deltas = lerobot::data::delta_timestamps(info("pusht_mini"), act);
  REQUIRE(deltas.size() == 1);
  CHECK(deltas.at("action") == std::vector<double>{0.0, 0.1, 0.2});
  const lerobot::data::DeltaIndices all{.observation = Ints{-1, 0}, .action = Ints{-1, 0}, .reward = Ints{0}};
  CHECK(lerobot::data::delta_timestamps(info("pusht_mini"), all).size() == 4);
  const auto renamed = lerobot::data::delta_timestamps(info("pusht_mini"), all,
                                                       {{"action", "other"}, {"next.done", "observation.done"}});
  CHECK_FALSE(renamed.contains("action"));
  CHECK(renamed.contains("next.done"));
  CHECK(lerobot::data::delta_timestamps(info("pusht_mini"), {}).empty());
}

TEST_CASE("check_cameras: one side must hold the other", "[features]") {
  const Json same{{"observation.image", {{"type", "VISUAL"}}}}, other{{"observation.images.top", {{"type", "VISUAL"}}}};
  Json more = same;
  more["observation.images.top"] = {{"type", "VISUAL"}};
  CHECK_NOTHROW(lerobot::data::check_cameras(same, info("pusht_mini"), {}));
  CHECK_NOTHROW(lerobot::data::check_cameras(more, info("pusht_mini"), {}));
  CHECK_NOTHROW(lerobot::data::check_cameras(Json::object(), info("pusht_mini"), {}));
  CHECK_NOTHROW(
      lerobot::data::check_cameras(other, info("pusht_mini"), {{"observation.image", "observation.images.top"}}));
  lerobot::test::expect_error(ErrorKind::kConfig, {"observation.image]", "observation.images.top"},
                              [&] { lerobot::data::check_cameras(other, info("pusht_mini"), {}); });
}
