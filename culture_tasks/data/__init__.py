"""Reading benchmark data from local files or the Hub, and checking them before anything runs."""
