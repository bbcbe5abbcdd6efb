"""When does each step of a program run on this topology: time by message size."""

from colsynth.simulate.model import Model, default_model, ideal_model
from colsynth.simulate.points import Point, Simulation, bus_factor
from colsynth.simulate.simulate import simulate
from colsynth.simulate.source import read_program

__all__ = [
    "Model",
    "Point",
    "Simulation",
    "bus_factor",
    "default_model",
    "ideal_model",
    "read_program",
    "simulate",
]
