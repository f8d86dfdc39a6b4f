// Choices of kernels as text: kernels.txtpb of a run's directory (arbalest/v1/kernels.proto).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "arbalest/v1/kernels.pb.h"
#include "engine/kernel_choices.h"
#include "options/text/source_text.h"

namespace arbalest::jobs {

v1::KernelChoice to_proto(const engine::KernelChoice& choice);
engine::KernelChoice from_proto(const v1::KernelChoice& message);

std::string kernel_choices_text(std::span<const engine::KernelChoice> choices);
// Throws ErrorKind::kUsage with line and column for a text that is none of kernel_choices_text().
std::vector<engine::KernelChoice> parse_kernel_choices(const SourceText& source);
// Reads such a file. Throws as parse_kernel_choices(), and kUsage if it cannot be read.
std::vector<engine::KernelChoice> read_kernel_choices(const std::filesystem::path& path);

}  // namespace arbalest::jobs
