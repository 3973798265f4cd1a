#pragma once
// log: rank-aware lines. A Logger is made in `main` and handed down.
#include "lerobot/log/logger.hpp"
