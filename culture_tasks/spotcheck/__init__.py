"""People check a judge: a random sheet of a model's responses, its ratings, and the judge's score corrected by them."""
