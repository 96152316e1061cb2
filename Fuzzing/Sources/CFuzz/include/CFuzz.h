#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int (*cfuzz_input)(const uint8_t *_Nullable data, size_t size);

/// Runs libFuzzer's driver with the program's arguments.
int cfuzz_run(cfuzz_input _Nonnull input, int argc, char *_Nullable *_Nonnull argv);
