"""Own cultures: projects in which people make data of a further culture, and what is built of them."""
