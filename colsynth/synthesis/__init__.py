"""From a Problem to a schedule: forests, timed schedules, and each further synthesizer.

The passes that pack trees stand at the top. Process groups (`groups`) are resolved below them, and
below that are packers of problems without groups: `in_network`, `allreduce`, `forest`.
"""
