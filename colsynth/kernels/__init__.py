"""The hot loops: numpy arrays in, numpy arrays out, compiled with numba.

They know nothing of the model. All arithmetic is on 64-bit integers; callers scale
fractions once and refuse what does not fit (`colsynth.synthesis.network`).
"""
