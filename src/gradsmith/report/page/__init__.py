"""The parts of the HTML report: what is shown (cards), the charts, the excerpts of source, the templates."""
