# The same commands for those whose fingers type make; ./do has the text. Arguments: make test ARGS="-k clock"
ARGS =

.PHONY: measure test truth bench docs setup clean

measure test truth bench docs setup clean:
	@./do $@ $(ARGS)
