"""The report's numbers in the formats of others: Every Eval Ever, and Hugging Face's evaluation results."""
