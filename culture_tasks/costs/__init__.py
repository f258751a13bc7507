"""What a judge will cost, before it is asked."""
