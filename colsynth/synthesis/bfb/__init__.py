"""Shortest-path trees on direct-connect fabrics (breadth-first broadcast), and trees of bounded
height.
"""
