"""Two models compared, and the gate."""
