"""Running kernels: thread pool, CUDA driver, events, kernel cache."""
