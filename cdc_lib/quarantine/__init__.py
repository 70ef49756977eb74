"""Tables that are left out until somebody mends their cause, and the way back for them."""
