"""Options of functions and commands: tables, checks, and the docstrings made from them."""
