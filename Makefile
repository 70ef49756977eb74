# For fingers that type make: every target is ./dev with the same name.
TARGETS := setup demo demo-clean test test-unit lint format docs lock clean soak

.PHONY: help $(TARGETS)
help:
	@./dev

$(TARGETS):
	@./dev $@

bench-%:
	@./dev $@
