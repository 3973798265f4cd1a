#pragma once
// ddp: every rank holds the whole module and averages gradients with the others.
//   replicate   wraps a module; its forward and backward then keep the ranks equal
//   Replicated  the owning handle; the module is free again when it goes
//   NoSync      a scope in which gradients stay on their rank, for accumulation
#include "lerobot/ddp/replicate.hpp"
