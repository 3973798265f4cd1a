#include "lerobot/data/image_transforms.hpp"

#include <torch/torch.h>

#include <set>

#include "lerobot/data/loader.hpp"
#include "support/expect_error.hpp"
#include "unit/data/fixtures.hpp"

namespace {

using lerobot::ErrorKind;
using lerobot::Json;
using lerobot::data::ImageTransforms;
using lerobot::data::ImageTransformsConfig;
using lerobot::test::expect_error;
using Ints = std::vector<std::int64_t>;

ImageTransformsConfig one(const char* type, const Json& kwargs = Json::object()) {
  return {.enable = true, .max_num_transforms = 3, .tfs = {{"it", 1.0, type, kwargs}}};
}

at::Tensor apply(const char* type, const Json& kwargs, const at::Tensor& image, std::uint64_t seed = 0) {
  return ImageTransforms(one(type, kwargs)).apply(image, seed, "camera");
}

/// [3, 2, 2] with chosen pixels.
at::Tensor pixels() {
  return at::tensor({10, 200, 30, 0, 50, 100, 30, 255, 90, 0, 30, 128}, at::kByte).view({3, 2, 2});
}

at::Tensor picture(bool bytes, std::int64_t height = 24, std::int64_t width = 20) {
  torch::manual_seed(1);
  const at::Tensor random = at::rand({3, height, width});
  return bytes ? random.mul(255).to(at::kByte) : random;
}

}  // namespace

TEST_CASE("ColorJitter: fixed factors by hand", "[image_transforms]") {
  const at::Tensor p = pixels();
  const at::Tensor brighter = apply("ColorJitter", {{"brightness", {1.5, 1.5}}}, p);
  CHECK(brighter.scalar_type() == at::kByte);
  CHECK(brighter.flatten()[0].item<int>() == 15);
  CHECK(brighter.flatten()[1].item<int>() == 255);
  CHECK(apply("ColorJitter", {{"brightness", {0.33, 0.33}}}, p).flatten()[0].item<int>() ==
        3);  // truncated, not rounded
  // Luma of the four pixels, floored: 42, 118, 29, 164 -> mean 88.25 (the weights add up to 0.9999).
  const at::Tensor flat = apply("ColorJitter", {{"contrast", {0.0, 0.0}}}, p);
  CHECK(flat.min().item<int>() == 88);
  CHECK(flat.max().item<int>() == 88);
  const at::Tensor gray = apply("ColorJitter", {{"saturation", {0.0, 0.0}}}, p);
  CHECK(lerobot::test::ints(gray[0]) == Ints{42, 118, 29, 164});
  CHECK(at::equal(gray[0], gray[2]));
}

TEST_CASE("ColorJitter: a third of a turn of hue takes red to green", "[image_transforms]") {
  at::Tensor red = at::zeros({3, 1, 1});
  red[0] = 0.8F;
  const at::Tensor turned = apply("ColorJitter", {{"hue", {1.0 / 3, 1.0 / 3}}}, red).flatten();
  CHECK(at::allclose(turned, at::tensor({0.0F, 0.8F, 0.0F}), 1e-5, 1e-5));
  const at::Tensor p = picture(false);
  CHECK(at::allclose(apply("ColorJitter", {{"hue", {0.0, 0.0}}}, p), p, 1e-5, 1e-5));
  const at::Tensor bytes = picture(true);
  CHECK(
      (apply("ColorJitter", {{"hue", {0.0, 0.0}}}, bytes).to(at::kInt) - bytes.to(at::kInt)).abs().max().item<int>() <=
      1);
}

TEST_CASE("ColorJitter: one number is a spread around 1", "[image_transforms]") {
  const at::Tensor white = at::full({3, 2, 2}, 0.5F);
  float low = 1, high = 0;
  const ImageTransforms jitter(one("ColorJitter", {{"brightness", 0.2}}));
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const float value = jitter.apply(white, seed, "c").max().item<float>();
    low = std::min(low, value);
    high = std::max(high, value);
  }
  CHECK(low == Approx(0.4).margin(0.005));
  CHECK(high == Approx(0.6).margin(0.005));
  CHECK(low >= 0.4F);
  CHECK(high <= 0.6F);
}

TEST_CASE("SharpnessJitter: 0 blurs the inside, 1 changes nothing", "[image_transforms]") {
  const at::Tensor p = picture(false);
  CHECK(at::allclose(apply("SharpnessJitter", {{"sharpness", {1.0, 1.0}}}, p), p, 0, 1e-6));
  const at::Tensor blurred = apply("SharpnessJitter", {{"sharpness", {0.0, 0.0}}}, p);
  CHECK(at::equal(blurred.select(1, 0), p.select(1, 0)));
  const float by_hand = ((p[1].slice(0, 4, 7).slice(1, 9, 12).sum() + 4 * p[1][5][10]) / 13).item<float>();
  CHECK(blurred[1][5][10].item<float>() == Approx(by_hand).epsilon(1e-5));
  const at::Tensor bytes = picture(true);
  CHECK(
      apply("SharpnessJitter", {{"sharpness", {0.0, 0.0}}}, bytes)[1][5][10].item<int>() ==
      static_cast<int>(std::nearbyint(
          ((bytes[1].slice(0, 4, 7).slice(1, 9, 12).sum() + 4 * bytes[1][5][10].to(at::kLong)).item<double>()) / 13)));
}

TEST_CASE("RandomAffine: whole shifts move pixels, the rest is filled", "[image_transforms]") {
  const at::Tensor p = picture(true);
  const ImageTransforms shift(one("RandomAffine", {{"degrees", {0.0, 0.0}}, {"translate", {0.2, 0.0}}}));
  std::set<std::int64_t> shifts;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const at::Tensor moved = shift.apply(p, seed, "c");
    for (std::int64_t dx = -4; dx <= 4; ++dx) {
      const at::Tensor expected = at::zeros_like(p);
      const std::int64_t w = p.size(2);
      expected.slice(2, std::max<std::int64_t>(dx, 0), std::min(w, w + dx))
          .copy_(p.slice(2, std::max<std::int64_t>(-dx, 0), std::min(w, w - dx)));
      if (at::equal(moved, expected)) shifts.insert(dx);
    }
  }
  CHECK(shifts.size() == 9);
}

TEST_CASE("RandomRotation and RandomAffine: right angles", "[image_transforms]") {
  const at::Tensor p = picture(true, 21, 21);
  CHECK(at::equal(apply("RandomRotation", {{"degrees", {90.0, 90.0}}}, p), at::rot90(p, 1, {1, 2})));
  CHECK(at::equal(apply("RandomAffine", {{"degrees", {90.0, 90.0}}}, p), at::rot90(p, -1, {1, 2})));
  const at::Tensor half = apply("RandomAffine", {{"degrees", {0.0, 0.0}}, {"scale", {2.0, 2.0}}}, p);
  CHECK(half[0][10][10].item<int>() == p[0][10][10].item<int>());
  CHECK(half[0][10][12].item<int>() == p[0][10][11].item<int>());
}

TEST_CASE("Resize: sizes and means", "[image_transforms]") {
  for (const bool bytes : {false, true}) {
    const at::Tensor p = picture(bytes, 24, 16);
    CHECK(apply("Resize", {{"size", {8, 8}}}, p).sizes() == at::IntArrayRef({3, 8, 8}));
    CHECK(apply("Resize", {{"size", 8}}, p).sizes() == at::IntArrayRef({3, 12, 8}));
    CHECK(apply("Resize", {{"size", 8}, {"max_size", 10}}, p).sizes() == at::IntArrayRef({3, 10, 6}));
    CHECK(apply("Resize", {{"size", {8, 8}}, {"interpolation", "nearest"}}, p).scalar_type() == p.scalar_type());
    const at::Tensor flat = at::full({2, 3, 24, 16}, 7, p.options());
    CHECK(at::allclose(apply("Resize", {{"size", {5, 9}}}, flat), at::full({2, 3, 5, 9}, 7, p.options())));
  }
}

TEST_CASE("Other torchvision types: what they do in one glance", "[image_transforms]") {
  const at::Tensor p = picture(true), f = picture(false);
  CHECK(at::equal(apply("Identity", {}, p), p));
  CHECK(at::equal(apply("RandomHorizontalFlip", {{"p", 1.0}}, p), p.flip({-1})));
  CHECK(at::equal(apply("RandomVerticalFlip", {{"p", 1.0}}, p), p.flip({-2})));
  CHECK(at::equal(apply("RandomVerticalFlip", {{"p", 0.0}}, p), p));
  CHECK(at::equal(apply("RandomInvert", {{"p", 1.0}}, p), 255 - p));
  CHECK(at::equal(apply("RandomSolarize", {{"p", 1.0}, {"threshold", 128}}, p), at::where(p.ge(128), 255 - p, p)));
  CHECK(at::equal(apply("RandomPosterize", {{"p", 1.0}, {"bits", 2}}, p), p.bitwise_and(0xC0)));
  CHECK(apply("RandomAutocontrast", {{"p", 1.0}}, p).amin({-2, -1}).max().item<int>() == 0);
  CHECK(apply("RandomAutocontrast", {{"p", 1.0}}, p).amax({-2, -1}).min().item<int>() >= 254);
  CHECK(apply("Grayscale", {}, p).sizes() == at::IntArrayRef({1, 24, 20}));
  const at::Tensor gray = apply("RandomGrayscale", {{"p", 1.0}}, f);
  CHECK(at::equal(gray[0], gray[2]));
  CHECK(at::equal(apply("CenterCrop", {{"size", {10, 8}}}, p), p.slice(1, 7, 17).slice(2, 6, 14)));
  CHECK(apply("CenterCrop", {{"size", 40}}, p).sizes() == at::IntArrayRef({3, 40, 40}));
  CHECK(apply("RandomCrop", {{"size", {10, 8}}}, p).sizes() == at::IntArrayRef({3, 10, 8}));
  CHECK(at::equal(apply("Pad", {{"padding", {1, 2}}}, p).slice(1, 2, 26).slice(2, 1, 21), p));
  CHECK(apply("RandomResizedCrop", {{"size", 12}}, p).sizes() == at::IntArrayRef({3, 12, 12}));
  CHECK(at::allclose(apply("GaussianBlur", {{"kernel_size", 5}}, at::full({3, 9, 9}, 0.25F)),
                     at::full({3, 9, 9}, 0.25F), 1e-5, 1e-6));
  CHECK(at::allclose(apply("RandomAdjustSharpness", {{"p", 1.0}, {"sharpness_factor", 1}}, f), f, 0, 1e-6));
}

TEST_CASE("LeRobot's own transforms: change float pictures within range, leave uint8 alone", "[image_transforms]") {
  const at::Tensor p = picture(true), f = picture(false).mul(0.8).add(0.1);
  for (const char* type : {"CoarseDropout", "GammaCorrection", "GaussianNoise", "GaussianPatchBrightness",
                           "JPEGCompression", "MotionBlur", "PlanckianJitter", "RandomShadow"}) {
    INFO(type);
    CHECK(at::equal(apply(type, {}, p, 3), p));
    const at::Tensor before = f.clone(), changed = apply(type, {}, f, 3);
    CHECK(at::equal(f, before));
    CHECK_FALSE(at::equal(changed, f));
    CHECK(changed.sizes() == f.sizes());
    CHECK(changed.min().item<float>() >= 0);
    CHECK(changed.max().item<float>() <= 1);
    CHECK(at::equal(apply(type, {}, f, 3), changed));
    const at::Tensor window = at::stack({f, f});
    CHECK(apply(type, {}, window, 3).sizes() == window.sizes());
  }
}

TEST_CASE("LeRobot's own transforms: figures", "[image_transforms]") {
  const at::Tensor half = at::full({3, 64, 64}, 0.5F);
  const at::Tensor noise = apply("GaussianNoise", {{"std", {10.0, 10.0}}}, half) - half;
  CHECK(noise.std().item<double>() * 255 == Approx(10).epsilon(0.03));
  CHECK(std::abs(noise.mean().item<double>()) * 255 < 0.3);
  CHECK(at::allclose(apply("GammaCorrection", {{"gamma", {2.0, 2.0}}}, half), half * half));
  CHECK(at::allclose(apply("MotionBlur", {}, half), half, 1e-5, 1e-6));
  const at::Tensor warm = apply("PlanckianJitter", {{"temperature", 3000}}, half * 0.5);
  CHECK(warm[0][0][0].item<double>() == Approx(0.25 * 0.6743 / 0.4029).epsilon(1e-5));
  CHECK(warm[1][0][0].item<double>() == Approx(0.25));
  CHECK(warm[2][0][0].item<double>() == Approx(0.25 * 0.0013 / 0.4029).epsilon(1e-4));
  const at::Tensor holes =
      apply("CoarseDropout",
            {{"max_holes", 1}, {"max_height_frac", 1.0}, {"max_width_frac", 1.0}, {"fill_value", 0.25}}, half, 5);
  const auto rows = holes[0].eq(0.25).any(1).sum().item<std::int64_t>(),
             cols = holes[0].eq(0.25).any(0).sum().item<std::int64_t>();
  CHECK(rows * cols == holes[0].eq(0.25).sum().item<std::int64_t>());
  CHECK(rows > 0);
}

TEST_CASE("JPEGCompression: flat pictures stay, quality decides the damage", "[image_transforms]") {
  const at::Tensor flat = at::full({3, 19, 21}, 128.0F / 255.0F);
  CHECK(at::allclose(apply("JPEGCompression", {{"quality", 50}}, flat), flat, 0, 0.5 / 255));
  const at::Tensor ramp = at::linspace(0, 1, 32).view({1, 1, 32}).expand({3, 32, 32}).contiguous();
  const auto damage = [&](int quality) {
    return (apply("JPEGCompression", {{"quality", quality}}, ramp) - ramp).abs().mean().item<double>();
  };
  CHECK(damage(100) < 1.0 / 255);
  CHECK(damage(10) > damage(75));
  CHECK(damage(10) < 0.1);
}

TEST_CASE("ImageTransforms: draws a subset by weight, in list order", "[image_transforms]") {
  // Each transform leaves its mark: brightness x 0.5, then invert.
  const at::Tensor p = at::full({3, 4, 4}, 0.5F);
  ImageTransformsConfig config{.enable = true,
                               .max_num_transforms = 2,
                               .tfs = {{"a", 1.0, "ColorJitter", {{"brightness", {0.5, 0.5}}}},
                                       {"b", 1.0, "RandomInvert", {{"p", 1.0}}},
                                       {"never", 0.0, "RandomInvert", {{"p", 1.0}}}}};
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    CHECK(ImageTransforms(config).apply(p, seed, "c").max().item<float>() == 0.75F);
  config.random_order = true;
  std::set<float> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    seen.insert(ImageTransforms(config).apply(p, seed, "c").max().item<float>());
  CHECK(seen == std::set<float>{0.75F, 0.25F});
  config.max_num_transforms = 1;
  config.tfs[0].weight = 3.0;
  int first = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed)
    first += ImageTransforms(config).apply(p, seed, "c").max().item<float>() == 0.25F ? 1 : 0;
  CHECK(first == Approx(1500).margin(80));
  config.enable = false;
  CHECK(at::equal(ImageTransforms(config).apply(p, 0, "c"), p));
}

TEST_CASE("ImageTransforms: wrong entries are refused at start (case D12)", "[image_transforms]") {
  const auto refuses = [](const char* type, const Json& kwargs, std::initializer_list<std::string> fragments) {
    expect_error(ErrorKind::kConfig, fragments, [&] { ImageTransforms transforms(one(type, kwargs)); });
  };
  refuses("Rezise", {{"size", {8, 8}}}, {"Rezise", "Resize", "SharpnessJitter", "GaussianNoise", "tfs.it"});
  refuses("Resize", {{"sice", {8, 8}}}, {"size", "missing"});
  refuses("Resize", {{"size", {8, 8}}, {"sice", 3}}, {"sice", "size"});
  refuses("Resize", {{"size", 0}}, {"size"});
  refuses("ColorJitter", {{"hue", {-0.7, 0.1}}}, {"hue", "-0.7"});
  refuses("ColorJitter", {{"brightness", {1.2, 0.8}}}, {"brightness"});
  refuses("SharpnessJitter", {}, {"sharpness"});
  refuses("MotionBlur", {{"kernel_size", {4, 4}}}, {"kernel_size", "odd"});
  refuses("PlanckianJitter", {{"temperature", 100}}, {"temperature"});
  refuses("RandomHorizontalFlip", {{"p", 2}}, {"p is 2"});
  for (const char* text : {R"({"enable": 1})", R"({"what": 1})", R"({"tfs": {"a": 3}})", R"({"tfs": []})", "[]"})
    expect_error(ErrorKind::kConfig, {"image_transforms"},
                 [&] { (void)lerobot::data::parse_image_transforms(Json::parse(text)); });
}

TEST_CASE("parse_image_transforms: the default block", "[image_transforms]") {
  const auto config = lerobot::data::parse_image_transforms(
      Json::parse(R"({"enable": true, "max_num_transforms": 2, "random_order": true,
      "tfs": {"hue": {"weight": 0.5, "type": "ColorJitter", "kwargs": {"hue": [-0.05, 0.05]}}, "same": {}}})"));
  CHECK(config.enable);
  CHECK(config.max_num_transforms == 2);
  CHECK(config.random_order);
  REQUIRE(config.tfs.size() == 2);
  CHECK(config.tfs[0].weight == 0.5);
  CHECK(config.tfs[1].type == "Identity");
}

TEST_CASE("Loader: two runs jitter alike, two ranks differently (case D12)", "[image_transforms]") {
  const lerobot::test::Fixture fixture(
      {.lengths = {6}, .cameras = {{.video = false}, {.key = "observation.images.film"}}});
  const auto run = [&](int rank, int workers, std::uint64_t seed) {
    lerobot::data::DatasetOptions options{.return_uint8 = true};
    options.image_transforms = std::make_shared<const ImageTransforms>(
        ImageTransformsConfig{.enable = true,
                              .max_num_transforms = 2,
                              .tfs = {{"size", 1.0, "Resize", {{"size", {8, 8}}}},
                                      {"light", 1.0, "ColorJitter", {{"brightness", {0.5, 1.5}}}}}});
    lerobot::test::CollectingLogger logger;
    const auto dataset = fixture.open(options);
    // One frame a batch and shuffling off: both ranks would otherwise see different frames.
    lerobot::data::Loader loader(
        dataset, lerobot::data::make_sampler(*dataset, {.shuffle = false}, logger),
        {.batch_size = 6, .dp_rank = rank, .dp_world = 2, .num_workers = workers, .seed = seed}, logger);
    std::vector<at::Tensor> out;
    for (int i = 0; i < 3; ++i) {
      auto batch = loader.next();
      CHECK(batch.tensors.at("index").equal(at::arange(6)));  // the second rank's batch is filler, the same frames
      out.push_back(batch.tensors.at("observation.images.front"));
      out.push_back(batch.tensors.at("observation.images.film").to(at::kFloat).div(255));
    }
    CHECK(out[0].sizes() == at::IntArrayRef({6, 3, 8, 8}));
    CHECK(out[0].scalar_type() == at::kFloat);
    return at::stack(out);
  };
  const at::Tensor first = run(0, 0, 7);
  CHECK(at::equal(run(0, 3, 7), first));
  CHECK_FALSE(at::equal(run(1, 0, 7), first));
  CHECK_FALSE(at::equal(run(0, 0, 8), first));
  CHECK_FALSE(at::equal(first[0], first[2]));  // epochs differ
  CHECK_FALSE(at::equal(first[0], first[1]));  // cameras differ
}
