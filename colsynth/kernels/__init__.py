"""The hot loops: numpy arrays in, numpy arrays out, compiled with numba.

They know nothing of the model. All arithmetic is on 64-bit integers; callers scale
fractions once and refuse what does not fit (`colsynth.bounds.network`).

Compiling is part of the first run, so kernels spell out as loops what numba compiles
slowly: assignments of one slice to another (two seconds), sorting, `np.where`.
"""
