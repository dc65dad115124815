"""The catalogue of defects: one file per rule, grouped by family. See CONTRIBUTING.md."""
