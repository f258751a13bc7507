"""Parts that both harnesses share: loading documents, judging in batches, records and aggregation."""
