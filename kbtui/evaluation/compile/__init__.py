"""Compiling candidates for a GPU that need not be there: what they launch, what each launch needs of the chip."""
