"""From scheduled trace to LLVM IR, host objects and PTX."""
