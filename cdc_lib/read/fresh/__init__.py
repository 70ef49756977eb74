"""Lake tables together with batches that are drained and not merged yet: what the next merge would make of them."""
