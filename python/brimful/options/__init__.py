"""What functions and commands take: tables of options, checks, and docstrings made from them."""
