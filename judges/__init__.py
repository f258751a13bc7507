"""LLM judges: what they are asked, who is asked, and how their replies are read."""
