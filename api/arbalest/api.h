// Marks what the library exports.
#pragma once

#define ARBALEST_API [[gnu::visibility("default")]]
