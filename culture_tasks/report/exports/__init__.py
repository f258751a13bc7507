"""The report's numbers in the format of others: Every Eval Ever."""
