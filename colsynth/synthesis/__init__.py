"""From a Problem to a schedule: bounds, forests, and each further synthesizer."""
