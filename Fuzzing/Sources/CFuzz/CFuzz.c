#include "CFuzz.h"

extern int LLVMFuzzerRunDriver(int *argc, char ***argv, cfuzz_input input);

int cfuzz_run(cfuzz_input input, int argc, char **argv) { return LLVMFuzzerRunDriver(&argc, &argv, input); }
