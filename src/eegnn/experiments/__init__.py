"""One module per table or figure, and the demo."""
