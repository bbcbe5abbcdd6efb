"""Passes, pipelines written as text, timing, dumps, and verification in between.

A pass is described in :mod:`colsynth.pipeline.interface`, listed in
:mod:`colsynth.pipeline.registry` and run by :mod:`colsynth.pipeline.manager`.
"""
