"""Tables that keep every version of a row: which versions a change opens and closes."""
