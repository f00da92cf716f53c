"""Results of experiments as tidy tables: a row per run and metric, in a journal, as CSV and as Parquet."""
